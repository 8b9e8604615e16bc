//! The unit, container and pod of a process, by the path of its control group.
//!
//! systemd, the engines of containers and Kubernetes name control groups by what they hold:
//!
//! ```text
//! /system.slice/nginx.service
//! /system.slice/docker-0123….scope
//! /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0123_….slice/cri-containerd-0123….scope
//! /kubepods/burstable/pod0123-…/0123…
//! ```
//!
//! A path is no evidence against the owner of the group: users choose the names of groups below their own ones. With
//! several hierarchies, the first one with a container counts, else that of systemd.

use std::fs;

/// The owner of a process, as named by its control group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// The unit of systemd: a service or scope that is no container.
    pub unit: Option<String>,
    /// The container: an id of 64 digits, or a name of LXC or nspawn.
    pub container: Option<String>,
    /// The UID of the pod of Kubernetes.
    pub pod: Option<String>,
}

/// What engines write before the id of a container in the name of its scope.
const ENGINES: [&str; 6] = [
    "docker-",
    "libpod-",
    "cri-containerd-",
    "crio-",
    "podman-",
    "nerdctl-",
];
/// What precedes the name of a container of LXC or nspawn.
const NAMED: [&str; 4] = [
    "lxc.payload.",
    "lxc.monitor.",
    "systemd-nspawn@",
    "machine-",
];

impl Owner {
    /// The owner of a process of this machine; empty if it has ended.
    pub fn from_process(pid: i32) -> Owner {
        let text = fs::read_to_string(format!("/proc/{pid}/cgroup"));
        text.map_or_else(|_| Owner::default(), |text| Owner::from_text(&text))
    }

    /// The owner in the text of a `/proc/PID/cgroup`.
    ///
    /// ```
    /// use tamis_deploy::owner::Owner;
    /// let owner = Owner::from_text("0::/system.slice/nginx.service\n");
    /// assert_eq!(owner.unit.as_deref(), Some("nginx.service"));
    /// ```
    pub fn from_text(text: &str) -> Owner {
        let groups: Vec<(&str, Owner)> = text
            .lines()
            .filter_map(|line| {
                let (_, rest) = line.split_once(':')?;
                let (controllers, path) = rest.split_once(':')?;
                Some((controllers, Owner::from_path(path)))
            })
            .collect();
        let is_of_systemd = |controllers: &str| matches!(controllers, "" | "name=systemd");
        let own = groups
            .iter()
            .filter(|(name, owner)| is_of_systemd(name) && !owner.is_empty());
        let held = groups.iter().filter(|(_, owner)| owner.container.is_some());
        let found = held.chain(own).next();
        found.map(|(_, owner)| owner.clone()).unwrap_or_default()
    }

    fn from_path(path: &str) -> Owner {
        let mut owner = Owner::default();
        let mut before = "";
        for name in path.split('/').filter(|name| !name.is_empty()) {
            if let Some(pod) = pod(name) {
                owner.pod = Some(pod);
            } else if let Some(container) = container(name, before) {
                owner = Owner {
                    container: Some(container),
                    pod: owner.pod,
                    unit: None,
                };
            } else if name.ends_with(".service") || name.ends_with(".scope") {
                owner.unit = Some(name.to_owned());
            }
            before = name;
        }
        owner
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Owner::default()
    }
}

/// The pod that a group is for: `pod0123-…` of the kubelet, `kubepods-burstable-pod0123_….slice` by systemd.
fn pod(name: &str) -> Option<String> {
    let name = name.strip_suffix(".slice").unwrap_or(name);
    let uid = match name.strip_prefix("pod") {
        Some(uid) => uid,
        None if name.starts_with("kubepods") => name.rsplit_once("-pod")?.1,
        None => return None,
    };
    let is_part = |c: char| c.is_ascii_hexdigit() || matches!(c, '-' | '_');
    (uid.len() >= 32 && uid.chars().all(is_part)).then(|| uid.replace('_', "-"))
}

fn container(name: &str, before: &str) -> Option<String> {
    let bare = name.strip_suffix(".scope").unwrap_or(name);
    let id = ENGINES
        .iter()
        .find_map(|engine| bare.strip_prefix(engine))
        .unwrap_or(bare);
    if id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Some(id.to_owned());
    }
    let bare = name.strip_suffix(".service").unwrap_or(bare);
    let named = NAMED.iter().find_map(|prefix| bare.strip_prefix(prefix));
    let named = named.or_else(|| (before == "lxc").then_some(name))?;
    Some(named.replace("\\x2d", "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    const UID: &str = "11111111-2222-3333-4444-555555555555";

    #[test]
    fn a_container_has_its_id_and_its_pod() {
        let slice = UID.replace('-', "_");
        let systemd =
            format!("kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{slice}.slice");
        for (path, pod) in [
            (format!("/docker/{ID}"), None),
            (format!("/system.slice/docker-{ID}.scope"), None),
            (format!("/machine.slice/libpod-{ID}.scope/container"), None),
            (
                format!("/user.slice/user-1.slice/user@1.service/user.slice/libpod-{ID}.scope"),
                None,
            ),
            (format!("/{systemd}/cri-containerd-{ID}.scope"), Some(UID)),
            (format!("/{systemd}/crio-{ID}.scope"), Some(UID)),
            (format!("/kubepods/besteffort/pod{UID}/{ID}"), Some(UID)),
        ] {
            let owner = Owner::from_text(&format!("0::{path}\n"));
            assert_eq!(owner.container.as_deref(), Some(ID), "{path}");
            assert_eq!(owner.pod.as_deref(), pod, "{path}");
            assert_eq!(owner.unit, None, "{path}");
        }
        for (path, name) in [
            ("/lxc.payload.web", "web"),
            ("/lxc/web", "web"),
            ("/machine.slice/systemd-nspawn@web.service/payload", "web"),
            ("/machine.slice/machine-web\\x2d1.scope", "web-1"),
        ] {
            let owner = Owner::from_text(&format!("0::{path}\n"));
            assert_eq!(owner.container.as_deref(), Some(name), "{path}");
        }
    }

    #[test]
    fn a_unit_is_the_innermost() {
        let unit = |text: &str| Owner::from_text(text).unit;
        let user = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/editor.service\n";
        assert_eq!(unit(user).as_deref(), Some("editor.service"));
        assert_eq!(
            unit("0::/user.slice/user-0.slice/session-3.scope").as_deref(),
            Some("session-3.scope")
        );
        assert_eq!(unit("0::/\n"), None);
        let several = "4:cpu:/\n1:name=systemd:/system.slice/a.service\n0::/\n";
        assert_eq!(unit(several).as_deref(), Some("a.service"));
    }

    #[test]
    fn names_that_only_resemble_a_container_are_none() {
        let short = &ID[1..];
        for path in [
            format!("/docker-{short}"),
            format!("/pod{ID}x"),
            "/podman.service".to_owned(),
        ] {
            assert_eq!(
                Owner::from_text(&format!("0::{path}")).container,
                None,
                "{path}"
            );
        }
    }
}
