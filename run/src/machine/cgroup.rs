//! Memory limits of the control groups of this process and of all their ancestors. Supports versions 1 and 2 of control
//! groups.

use std::fs;
use std::path::{Path, PathBuf};

/// Memory that a control group and all its ancestors allow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupMemory {
    /// The lowest of their limits, in bytes.
    pub limit: u64,
    /// The lowest number of bytes that any of these limits leaves free.
    pub free: u64,
}

/// The memory that the control groups of this process allow; `None` if none of them has a limit. `root` is the folder
/// of `proc` and `sys`.
pub fn memory(root: &Path) -> Option<GroupMemory> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
    let mounts = fs::read_to_string(root.join("proc/self/mountinfo")).ok()?;
    let limits = groups.lines().filter_map(|line| Hierarchy::of(line)).flat_map(|(hierarchy, group)| {
        let folders = hierarchy.folders(&mounts, group);
        folders.into_iter().filter_map(move |folder| hierarchy.limit_of(&root.join(folder)))
    });
    limits.reduce(|a, b| GroupMemory { limit: a.limit.min(b.limit), free: a.free.min(b.free) })
}

/// A tree of control groups that counts memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hierarchy {
    /// Version 1: a separate tree for memory.
    Memory,
    /// Version 2: one tree for all resources.
    Unified,
}

impl Hierarchy {
    /// Parses a line of `/proc/self/cgroup`.
    ///
    /// Such a line is `0::/group` in version 2, and `NUMBER:CONTROLLERS:/group` in version 1.
    fn of(line: &str) -> Option<(Self, &str)> {
        let mut fields = line.splitn(3, ':');
        let (number, controllers, group) = (fields.next()?, fields.next()?, fields.next()?);
        if controllers.split(',').any(|controller| controller == "memory") {
            Some((Self::Memory, group))
        } else {
            (number == "0" && controllers.is_empty()).then_some((Self::Unified, group))
        }
    }

    /// The folders of a group and of its ancestors, as far as they are mounted, without the leading slash.
    fn folders(self, mounts: &str, group: &str) -> Vec<PathBuf> {
        let Some((place, point)) = mounts.lines().find_map(|line| self.mount(line)) else {
            return Vec::new();
        };
        // In a container, the mounted part of the tree may begin at the group, or not contain the group's path at all.
        let below = Path::new(group).strip_prefix(place).unwrap_or(Path::new(""));
        let point = Path::new(point.trim_start_matches('/'));
        let folder = point.join(below);
        folder.ancestors().take_while(|folder| folder.starts_with(point)).map(Path::to_path_buf).collect()
    }

    /// Parses a line of `/proc/self/mountinfo`: `ID PARENT DEVICE BEGINS AT OPTIONS [TAGS] - TYPE SOURCE OPTIONS`.
    ///
    /// Returns `BEGINS`, the group at the root of the mount, and `AT`, its mount point. Returns `None` if the line does
    /// not mount this tree.
    fn mount(self, line: &str) -> Option<(&str, &str)> {
        let (mount, kind) = line.split_once(" - ")?;
        let mut kind = kind.split(' ');
        let name = kind.next()?;
        let mut is_of_memory =
            || kind.nth(1).is_some_and(|options| options.split(',').any(|o| o == "memory"));
        let is_this = match self {
            Self::Memory => name == "cgroup" && is_of_memory(),
            Self::Unified => name == "cgroup2",
        };
        let mut fields = mount.split(' ').skip(3);
        if is_this { Some((fields.next()?, fields.next()?)) } else { None }
    }

    fn limit_of(self, folder: &Path) -> Option<GroupMemory> {
        let (limit, usage) = match self {
            Self::Memory => ("memory.limit_in_bytes", "memory.usage_in_bytes"),
            Self::Unified => ("memory.max", "memory.current"),
        };
        let number = |name| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
        // A group without a limit has `max` in version 2, and a number above the memory of any machine in version 1.
        let limit = number(limit).filter(|limit| *limit < 1 << 60)?;
        let used = number(usage).unwrap_or(0).saturating_sub(self.cached(folder));
        Some(GroupMemory { limit, free: limit.saturating_sub(used) })
    }

    /// Bytes of cached files. The group counts them as used, but the system drops them when it needs memory.
    fn cached(self, folder: &Path) -> u64 {
        let names = match self {
            Self::Memory => ["total_active_file ", "total_inactive_file "],
            Self::Unified => ["active_file ", "inactive_file "],
        };
        let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
        let of =
            |name: &str| stat.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
        names.into_iter().filter_map(of).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
22 1 0:4 / /proc rw - proc proc rw
30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate
31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
32 23 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct
";

    /// A folder that stands for a machine with these files.
    fn machine(group: &str, mounts: &str, files: &[(&str, &str)]) -> tempfile::TempDir {
        let machine = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = machine.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/self/cgroup", group);
        write("proc/self/mountinfo", mounts);
        files.iter().for_each(|(path, text)| write(path, text));
        machine
    }

    fn limit(group: &str, mounts: &str, files: &[(&str, &str)]) -> Option<(u64, u64)> {
        memory(machine(group, mounts, files).path()).map(|memory| (memory.limit, memory.free))
    }

    #[test]
    fn the_lowest_limit_of_a_group_and_its_ancestors_counts() {
        let files = [
            ("sys/fs/cgroup/job/memory.max", "500\n"),
            ("sys/fs/cgroup/job/memory.current", "480\n"),
            ("sys/fs/cgroup/job/memory.stat", "anon 450\nactive_file 10\ninactive_file 20\n"),
            ("sys/fs/cgroup/job/step/memory.max", "max\n"),
            ("sys/fs/cgroup/job/step/task/memory.max", "900\n"),
            ("sys/fs/cgroup/job/step/task/memory.current", "100\n"),
        ];
        assert_eq!(limit("0::/job/step/task\n", MOUNTS, &files), Some((500, 50)));
        assert_eq!(limit("0::/job/step\n", MOUNTS, &files), Some((500, 50)));
        assert_eq!(limit("0::/other\n", MOUNTS, &files), None);
        assert_eq!(limit("0::/\n", MOUNTS, &files), None);
    }

    #[test]
    fn version_1_has_a_separate_tree_for_memory() {
        let files = [
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "700\n"),
            ("sys/fs/cgroup/memory/slurm/step/memory.limit_in_bytes", "200\n"),
            ("sys/fs/cgroup/memory/slurm/step/memory.usage_in_bytes", "300\n"),
        ];
        let groups = "5:cpu,cpuacct:/elsewhere\n4:memory:/slurm/step\n0::/\n";
        assert_eq!(limit(groups, MOUNTS, &files), Some((200, 0)));
        assert_eq!(limit("4:memory:/\n", MOUNTS, &files), None);
    }

    #[test]
    fn a_container_may_see_only_its_part_of_the_tree() {
        let mounts = "31 23 0:27 /docker/1a2b /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        let files = [("sys/fs/cgroup/memory/memory.limit_in_bytes", "300\n")];
        assert_eq!(limit("4:memory:/docker/1a2b\n", mounts, &files), Some((300, 300)));
        assert_eq!(limit("4:memory:/somewhere/else\n", mounts, &files), Some((300, 300)));
        assert_eq!(limit("4:memory:/docker/1a2b\n", "", &files), None);
    }
}
