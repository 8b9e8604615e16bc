// Prints the default profile of a release of containerd, for its default capabilities. `run` replaces PACKAGE.
package main

import (
	"encoding/json"
	"os"

	"PACKAGE"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

func main() {
	capabilities := []string{"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD", "CAP_NET_RAW",
		"CAP_SETGID", "CAP_SETUID", "CAP_SETFCAP", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_KILL",
		"CAP_AUDIT_WRITE"}
	spec := &specs.Spec{Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{Bounding: capabilities}}}
	if err := json.NewEncoder(os.Stdout).Encode(seccomp.DefaultProfile(spec)); err != nil {
		panic(err)
	}
}
