//! A power cut: a disk of its own, of which only what was synced is there afterwards.
//!
//! The spool lies on a file system inside a file. What the beacon has not synced is in the kernel's memory and not in that
//! file; a copy of the file, made while the beacon is stopped, is what a machine would find after the cut.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use afterboot_beacon::{Durability, SpoolOptions};
use tempfile::TempDir;

use crate::child::{Order, Process, Role, acked};
use crate::collector::{Mode, Server};
use crate::common::{LONG, balance, names_in, secs, until_arrived};

/// A mounted image.
struct Disk {
    mounted: PathBuf,
}

fn run(program: &str, args: &[&Path]) -> Result<(), String> {
    let mut command = Command::new(program);
    let ended =
        command.args(args).stdout(Stdio::null()).output().map_err(|error| format!("{program}: {error}"))?;
    if ended.status.success() {
        return Ok(());
    }
    Err(format!("{program}: {}", String::from_utf8_lossy(&ended.stderr).trim()))
}

impl Disk {
    fn mount(image: &Path, at: PathBuf) -> Result<Disk, String> {
        fs::create_dir(&at).map_err(|error| error.to_string())?;
        run("mount", &[Path::new("-o"), Path::new("loop"), image, &at])?;
        Ok(Disk { mounted: at })
    }

    fn spool(&self) -> PathBuf {
        self.mounted.join("spool")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if run("umount", &[&self.mounted]).is_err() {
            let _ = run("umount", &[Path::new("-l"), &self.mounted]);
        }
    }
}

/// How many of the events with a receipt were there after the cut, and how many were not.
fn cut(durability: Durability) -> Result<(usize, usize), String> {
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let (image, copy) = (folder.path().join("disk"), folder.path().join("copy"));
    let file = fs::File::create(&image).map_err(|error| error.to_string())?;
    file.set_len(64 << 20).map_err(|error| error.to_string())?;
    run("mkfs.ext4", &[Path::new("-q"), Path::new("-F"), &image])?;
    let disk = Disk::mount(&image, folder.path().join("mounted"))?;

    let server = Server::start(Mode::Refuse);
    let role = Role::Power { events: 1_000_000, synced: durability == Durability::Power };
    let order = Order {
        role,
        url: server.url(),
        root: disk.spool(),
        user: Some("u1".to_owned()),
        name: "p".to_owned(),
    };
    let writer = Process::start(&order);
    let mut said = Vec::new();
    while acked(&said).len() < 60 {
        said.push(writer.next(LONG).expect("a receipt"));
    }
    writer.pause();
    run("cp", &[Path::new("--sparse=always"), &image, &copy])?;
    said.extend(writer.kill());
    drop(disk);

    let disk = Disk::mount(&copy, folder.path().join("after the cut"))?;
    server.set_mode(Mode::Ok);
    let next = afterboot_beacon::Beacon::builder("shop").endpoint(&server.url()).user("u1");
    let next = next.spool(SpoolOptions::new(disk.spool())).replay_spread(std::time::Duration::ZERO);
    let next = next.build().expect("a beacon");
    let durable = acked(&said);
    if durability == Durability::Power {
        until_arrived(&server, &durable);
    }
    balance(next.shutdown_blocking(secs(5)));
    let arrived = server.look(names_in);
    let there = durable.iter().filter(|name| arrived.contains_key(*name)).count();
    Ok((there, durable.len() - there))
}

#[expect(clippy::print_stderr, reason = "whoever reads the run must see what it did not show")]
fn skipped(why: &str) {
    eprintln!("NOT TESTED: no disk of its own can be made here ({why})");
}

/// B1: `Durability::Power` is what its name says.
#[test]
fn what_has_a_synced_receipt_survives_a_power_cut() {
    match cut(Durability::Power) {
        Ok((there, lost)) => assert!(there >= 60 && lost == 0, "{there} there, {lost} lost"),
        Err(why) => skipped(&why),
    }
}

/// B1: and the weaker promise is none against it, which also shows that this disk forgets what was not synced.
#[test]
fn what_has_a_receipt_for_the_processs_death_may_not_survive_a_power_cut() {
    match cut(Durability::Process) {
        Ok((there, lost)) => assert!(lost > 0, "all {there} are there: nothing was cut"),
        Err(why) => skipped(&why),
    }
}
