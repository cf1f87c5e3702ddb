//! A clip from a stranger, and a clip from elsewhere.

use std::fs;

use crate::support::Project;

/// Protects whoever replays a clip: cargo is told what to build, and not which linker, runner or settings to use.
#[test]
fn a_clip_cannot_make_cargo_run_a_program() {
    let project = Project::new("bank");
    let said = project.threadbare(&["test", "--lib", "--json", "tests::loses_a_deposit"]);
    assert_eq!(said.code, 1, "{}{}", said.stdout, said.stderr);
    let clip = project.path(said.findings("tests::loses_a_deposit")[0]["clip"].as_str().expect("a clip"));
    let text = fs::read_to_string(&clip).expect("the clip is there");
    let ran = project.path("ran");
    let linker = project.path("linker.sh");
    fs::write(&linker, format!("#!/bin/sh\ntouch {}\n", ran.display())).expect("a script");
    let config = format!("--config=target.x86_64-unknown-linux-gnu.linker=\"{}\"", linker.display());
    let forged = project.path("threadbare-out/forged.clip");
    for argument in
        [&config, "--manifest-path=/tmp/Cargo.toml", "--target-dir=/tmp/x", "--features=a;b", "-Zunstable"]
    {
        let more = text.replacen(
            "compiler-argument --lib\n",
            &format!("compiler-argument --lib\ncompiler-argument {argument}\n"),
            1,
        );
        assert_ne!(more, text);
        fs::write(&forged, more).expect("a clip can be written");
        let said = project.threadbare(&["replay", forged.to_str().expect("UTF-8")]);
        assert_eq!((said.code, said.stdout.as_str()), (2, ""), "{argument}: {}", said.stderr);
        assert!(said.stderr.contains("for cargo that is not known to be harmless: "), "{}", said.stderr);
        assert!(!ran.exists(), "{argument} ran");
    }
    fs::write(&forged, text.replacen("compiler-argument test\n", "compiler-argument run\n", 1))
        .expect("a clip");
    let said = project.threadbare(&["replay", forged.to_str().expect("UTF-8")]);
    assert_eq!((said.code, said.stdout.as_str()), (2, ""), "{}", said.stderr);

    // The clip itself knows its project: it is replayed from elsewhere.
    let said = project.threadbare_in(std::path::Path::new("/"), &["replay", clip.to_str().expect("UTF-8")]);
    assert!(said.stdout.contains("reproduced in 1 of 1 runs"), "{}{}", said.stdout, said.stderr);
}
