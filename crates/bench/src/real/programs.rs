//! The programs, and how each is built and used.

/// A compressor that uses threads.
pub struct Program {
    /// Debian's source package.
    pub package: &'static str,
    /// What a shell does at the root of the source; `CC` and `CXX` are the wrapper.
    pub build: &'static str,
    /// What comes of it.
    pub binary: &'static str,
    /// Bytes to compress: enough for several blocks, so that every worker has one.
    pub input: usize,
    /// Arguments that write the result to standard output; the name of the file follows.
    pub compress: &'static [&'static str],
    pub decompress: &'static [&'static str],
    /// The system's own program for this format.
    pub reference: &'static str,
}

pub const PROGRAMS: &[Program] = &[
    Program {
        package: "pbzip2",
        build: r#"make CXX="$CXX" pbzip2"#,
        binary: "pbzip2",
        input: 350_000,
        compress: &["-z", "-k", "-c", "-q", "-p3", "-b1"],
        decompress: &["-d", "-k", "-c", "-q", "-p3"],
        reference: "bzip2",
    },
    Program {
        package: "lbzip2",
        // Its copy of gnulib is older than glibc's change of these names; Debian has a patch for that.
        build: r#"./configure CPPFLAGS="-D_IO_ftrylockfile -D_IO_IN_BACKUP=0x100" && make -j"$(nproc)""#,
        binary: "src/lbzip2",
        input: 350_000,
        compress: &["-z", "-k", "-c", "-q", "-n3", "-1"],
        decompress: &["-d", "-k", "-c", "-q", "-n3"],
        reference: "bzip2",
    },
    Program {
        package: "xz-utils",
        build: "./configure --disable-shared --disable-nls --disable-doc --disable-scripts && make -j$(nproc)",
        binary: "src/xz/xz",
        input: 20_000,
        compress: &["-z", "-k", "-c", "-q", "-T3", "-0", "--block-size=6000"],
        decompress: &["-d", "-k", "-c", "-q", "-T3"],
        reference: "xz",
    },
    Program {
        package: "libzstd",
        build: r#"make -j"$(nproc)" -C programs CC="$CC" HAVE_ZLIB=0 HAVE_LZMA=0 HAVE_LZ4=0 zstd"#,
        binary: "programs/zstd",
        // A job has 512 KiB at least.
        input: 1_200_000,
        compress: &["-z", "-k", "-c", "-q", "-T3", "-1", "-B512KiB"],
        decompress: &["-d", "-k", "-c", "-q"],
        reference: "zstd",
    },
];
