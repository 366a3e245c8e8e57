package sandbox

import (
	"context"
	"strings"

	"github.com/tandem-tune/tandem/profiler"
)

// remedies say how a layer that is missing can be had.
var remedies = map[string]string{
	Namespaces: "let users make namespaces (Ubuntu: sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile for tandem; containers: run the worker outside of one); without them commands share /dev/shm, /tmp stays closed to them, and sockets of services are guarded by their modes alone",
	Files:      "use a kernel of 5.13 or newer with landlock in its boot option lsm=, and a container that allows it; without it commands read and write all that the worker's user can",
	Signals:    "use a kernel of 6.12 or newer; without it a command can end the worker and other commands",
	Calls:      "use a kernel with seccomp filters on amd64 or arm64, and a container that allows them",
}

// Detect says which layers hold training scripts on this machine: each is
// tried.
func Detect(ctx context.Context) []profiler.Capability {
	found, err := Probe(ctx)
	if err != nil {
		return []profiler.Capability{{Name: "sandbox", Reason: err.Error(), Remedy: "tandem worker --sandbox off runs commands with all the rights of the worker"}}
	}
	whole := profiler.Capability{Name: "sandbox", Available: true, Detail: "all layers are there: --sandbox strict can be had"}
	if missing := Missing(found); len(missing) > 0 {
		var names []string
		for _, one := range missing {
			name, _, _ := strings.Cut(one, ":")
			names = append(names, name)
		}
		whole.Detail, whole.Reason = "without "+strings.Join(names, ", "), "--sandbox strict, and studies that want it, cannot run here"
	}
	capabilities := []profiler.Capability{whole}
	for _, name := range layers {
		for _, one := range found {
			if one.Name == name {
				capabilities = append(capabilities, capability(one))
			}
		}
	}
	return capabilities
}

func capability(one Layer) profiler.Capability {
	c := profiler.Capability{Name: "sandbox " + one.Name, Available: one.Active}
	if one.Active {
		c.Detail = one.Detail
	} else {
		c.Reason, c.Remedy = one.Detail, remedies[one.Name]
	}
	return c
}
