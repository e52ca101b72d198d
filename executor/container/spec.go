//go:build linux && (amd64 || arm64)

package container

import "encoding/json"

// The part of the OCI runtime specification (version 1.0.2, which every runtime in
// use takes) that a bundle says.
type (
	spec struct {
		Version  string  `json:"ociVersion"`
		Process  process `json:"process"`
		Root     root    `json:"root"`
		Hostname string  `json:"hostname"`
		Mounts   []mount `json:"mounts"`
		Linux    linux   `json:"linux"`

		Annotations map[string]string `json:"annotations"`
	}
	process struct {
		User            user                `json:"user"`
		Args            []string            `json:"args"`
		Env             []string            `json:"env"`
		Cwd             string              `json:"cwd"`
		Capabilities    map[string][]string `json:"capabilities"`
		Rlimits         []rlimit            `json:"rlimits"`
		NoNewPrivileges bool                `json:"noNewPrivileges"`
		OOMScoreAdj     int                 `json:"oomScoreAdj"`
	}
	user struct {
		UID   int `json:"uid"`
		GID   int `json:"gid"`
		Umask int `json:"umask"`
	}
	rlimit struct {
		Type string `json:"type"`
		Hard uint64 `json:"hard"`
		Soft uint64 `json:"soft"`
	}
	root struct {
		Path     string `json:"path"`
		Readonly bool   `json:"readonly"`
	}
	mount struct {
		Destination string   `json:"destination"`
		Type        string   `json:"type"`
		Source      string   `json:"source"`
		Options     []string `json:"options"`
	}
	linux struct {
		Namespaces  []namespace `json:"namespaces"`
		UIDMappings []mapping   `json:"uidMappings"`
		GIDMappings []mapping   `json:"gidMappings"`
		Resources   *resources  `json:"resources,omitempty"`
	}
	resources struct {
		Memory memory `json:"memory"`
	}
	memory struct {
		Limit int64 `json:"limit"`
	}
	namespace struct {
		Type string `json:"type"`
	}
	mapping struct {
		ContainerID int `json:"containerID"`
		HostID      int `json:"hostID"`
		Size        int `json:"size"`
	}
)

// namespaces are those that a container has of its own, as the specification and as
// /proc call them.
var namespaces = [][2]string{{"user", "user"}, {"mount", "mnt"}, {"pid", "pid"}, {"network", "net"}, {"ipc", "ipc"}, {"uts", "uts"}, {"cgroup", "cgroup"}}

// Annotations of a container of ours.
const (
	labelInstance = "org.tracon.instance"
	labelRun      = "org.tracon.run"
)

// config writes the bundle's config.json.
func (o order) config(ground string) ([]byte, error) {
	ids := []mapping{{0, o.ids[0], 1}, {insideID, o.ids[1], 1}}
	s := spec{
		Version: "1.0.2",
		Process: process{
			User: user{insideID, insideID, 0o077}, Args: append([]string{initPath}, o.argv...), Env: o.env, Cwd: skillDir,
			Capabilities: map[string][]string{}, Rlimits: o.rlimits, NoNewPrivileges: true, OOMScoreAdj: 1000,
		},
		Root: root{ground + "/root", true}, Hostname: "container",
		Mounts: []mount{
			{"/proc", "proc", "proc", []string{"nosuid", "noexec", "nodev", "ro", "subset=pid", "hidepid=2"}},
			{"/dev", "tmpfs", "tmpfs", []string{"nosuid", "noexec", "mode=755", "size=64k", "nr_inodes=64"}},
			{shmDir, "tmpfs", "shm", []string{"nosuid", "noexec", "nodev", "mode=1777", "nr_inodes=1024", o.shmSize()}},
		},
		Linux:       linux{UIDMappings: ids, GIDMappings: ids},
		Annotations: map[string]string{labelInstance: o.instance, labelRun: o.name},
	}
	for _, set := range []string{"bounding", "effective", "inheritable", "permitted", "ambient"} {
		s.Process.Capabilities[set] = []string{}
	}
	for _, n := range namespaces {
		s.Linux.Namespaces = append(s.Linux.Namespaces, namespace{n[0]})
	}
	if o.gvisor {
		o.forGVisor(&s, ground)
	}
	return json.Marshal(s)
}
