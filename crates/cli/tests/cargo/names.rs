//! Clips name places as the compiler does, and the compiler's names have hashes in them.

use std::fs;

use crate::support::Project;

/// Protects clips from a new version of the project, which changes the hash in every name that the compiler makes of
/// it: of a closure, a copy of a generic function, a method of a trait, a static. So does a new compiler, and a new
/// Threadbare.
#[test]
fn a_clip_is_replayed_though_every_hash_has_changed() {
    let project = Project::new("names");
    let clips = clips(&project);
    let before = clips.each_ref().map(|clip| shared(&project, clip));

    let manifest = project.path("Cargo.toml");
    let text = fs::read_to_string(&manifest).expect("the manifest");
    fs::write(&manifest, text.replace("0.1.0", "0.2.0")).expect("the manifest can be written");
    for clip in &clips {
        let replayed = project.threadbare(&["replay", clip]);
        let words = "reproduced in 1 of 1 runs";
        assert!(replayed.stdout.contains(words), "{clip}: {}{}", replayed.stdout, replayed.stderr);
    }

    // Otherwise nothing was tested.
    let after = self::clips(&project).map(|clip| shared(&project, &clip));
    for (before, after) in before.iter().zip(&after) {
        assert_eq!((before.len(), after.len()), (1, 1));
        assert_ne!(before, after, "the hashes are what they were");
    }
}

/// Hunts in the two tests and gives the clip of each.
fn clips(project: &Project) -> [String; 2] {
    let said = project.threadbare(&["test", "--json"]);
    assert_eq!(said.code, 1, "{}{}", said.stdout, said.stderr);
    ["a", "b"].map(|test| said.findings(test)[0]["clip"].as_str().expect("a clip").to_owned())
}

/// The names of the statics that a clip says are shared.
fn shared(project: &Project, clip: &str) -> Vec<String> {
    let text = fs::read_to_string(project.path(clip)).expect("the clip is there");
    let names = text.lines().filter_map(|line| line.strip_prefix("global ")?.split(' ').next());
    names.map(str::to_owned).collect()
}
