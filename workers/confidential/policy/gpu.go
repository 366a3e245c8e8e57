package policy

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/study/studyfile/tree"
	"github.com/tandem-tune/tandem/workers/confidential/evidence"
)

// GPU is what each GPU of a machine must be; nil: nobody looks at them.
type GPU struct {
	Arch []string `json:"arch"`
	// DevTools lets GPUs in that developers' tools may look into.
	DevTools bool `json:"devtools,omitempty"`
	// Required refuses machines that show none.
	Required bool `json:"required"`
	RIM      RIM  `json:"rim"`
}

// RIM is what a GPU must run: versions, in which * stands for anything, and hashes.
type RIM struct {
	Driver       []string            `json:"driver"`
	Measurements map[string][]string `json:"measurements"` // by the numbers of NVIDIA's lists
	VBIOS        []string            `json:"vbios"`
}

// mostMeasured bounds the numbers of measurements.
const mostMeasured = 128

var (
	architectures = []string{"blackwell", "hopper"}
	versions      = regexp.MustCompile(`^[0-9a-f.*]{1,32}$`)
)

func readGPU(d tree.Section, at string, n *tree.Node) *GPU {
	s, ok := d.Open(at, n, "required", "arch", "devtools", "rim")
	if !ok {
		return nil
	}
	found := &GPU{Arch: read(s, "arch", true, strings.Join(architectures, ", "), func(one string) bool { return slices.Contains(architectures, one) })}
	s.Need("required", "true refuses machines that show no GPU, false lets them in")
	s.Flag("required", &found.Required)
	s.Flag("devtools", &found.DevTools)
	list, at := s.Need("rim", "say what GPUs must run: driver, vbios and measurements")
	if list == nil {
		return found
	}
	rim, ok := s.Open(at, list, "driver", "vbios", "measurements")
	if !ok {
		return found
	}
	const wanted = "versions such as 580.95.05, or 580.*"
	found.RIM = RIM{Driver: read(rim, "driver", true, wanted, versions.MatchString), VBIOS: read(rim, "vbios", true, wanted, versions.MatchString)}
	if list, at = rim.Need("measurements", "list hashes by their numbers: 'tandem policy from-evidence' learns them"); list == nil {
		return found
	}
	if list.Kind != tree.Mapping || len(list.Entries) == 0 {
		s.Wrong(at, list, "a mapping of numbers to hashes")
		return found
	}
	found.RIM.Measurements = map[string][]string{}
	for _, one := range list.Entries {
		if number, err := strconv.ParseUint(one.Key, 10, 7); err != nil || strconv.FormatUint(number, 10) != one.Key {
			s.Fault(tree.Join(at, one.Key), one.Value, "must be a number from 0 to %d", mostMeasured-1)
		}
		found.RIM.Measurements[one.Key] = hashes(tree.Section{Decoder: s.Decoder, Path: at, Node: list}, one.Key, 48, true)
	}
	return found
}

// appraise refuses GPUs that are not as they must be.
func (g *GPU) appraise(p *Policy, claims *evidence.Claims, now time.Time) error {
	if g == nil {
		return nil
	}
	if g.Required && len(claims.GPUs) == 0 {
		return evidence.Refuse("gpu_missing", "the policy requires GPUs, and the machine showed the report of none: 'tandem doctor --confidential' says there why")
	}
	for i, one := range claims.GPUs {
		switch {
		case !slices.Contains(g.Arch, one.Arch):
			return evidence.Refuse("product_not_allowed", "GPU %d is a %s, and the policy allows %v", i, one.Arch, g.Arch)
		case one.DevTools && !g.DevTools:
			return evidence.Refuse("gpu_devtools", "GPU %d is in the mode for developers' tools, so the host may look into it: set its mode to on", i)
		case one.OpenLinks:
			return evidence.Refuse("gpu_devtools", "GPU %d is in Protected PCIe, in which links between GPUs are not encrypted: set its mode to on", i)
		case !matches(g.RIM.Driver, one.Driver):
			return evidence.Refuse("gpu_rim", "GPU %d has the driver %s, and the policy allows %v: update the policy or the machine", i, one.Driver, g.RIM.Driver)
		case !matches(g.RIM.VBIOS, one.VBIOS):
			return evidence.Refuse("gpu_rim", "GPU %d has the VBIOS %s, and the policy allows %v: update the policy or the machine", i, one.VBIOS, g.RIM.VBIOS)
		}
		for number := range mostMeasured {
			if allowed, listed := g.RIM.Measurements[strconv.Itoa(number)]; listed && !slices.Contains(allowed, one.Measurements[number]) {
				return evidence.Refuse("gpu_rim", "measurement %d of GPU %d is %q, and the policy allows %s: update the policy or the machine", number, i, one.Measurements[number], few(allowed))
			}
		}
		if err := p.fresh(one.Collateral, evidence.GPUDocuments, now); err != nil {
			return err
		}
	}
	return nil
}

// matches reports whether the version is one of the patterns.
func matches(patterns []string, version string) bool {
	return slices.ContainsFunc(patterns, func(one string) bool {
		found, err := path.Match(one, version)
		return err == nil && found
	})
}

func (g *GPU) explain() (trusted, limits, warnings []string) {
	if g == nil {
		return nil, []string{"GPUs are not looked at: one that is attached may read what it is given."}, nil
	}
	trusted = []string{fmt.Sprintf("GPUs of NVIDIA, %s, with driver %s and VBIOS %s, of which %d measurements are as listed.", strings.Join(g.Arch, " or "), strings.Join(g.RIM.Driver, " or "), strings.Join(g.RIM.VBIOS, " or "), len(g.RIM.Measurements))}
	if g.DevTools {
		warnings = append(warnings, "gpu.devtools: the host can look into such a GPU, so nothing on it is confidential.")
	}
	if !g.Required {
		warnings = append(warnings, "gpu.required is false: machines that show no GPU get keys too.")
	}
	return trusted, []string{
		"Whether developers' tools may look into a GPU is the word of the measured image: no report says it.",
		"Whether NVIDIA revoked a single GPU is not looked at, only whether it revoked those who vouch for it.",
	}, warnings
}

// learned is the part of a policy for GPUs like those.
func learnedGPUs(claims *evidence.Claims, write func(format string, args ...any)) {
	if len(claims.GPUs) == 0 {
		return
	}
	all := func(of func(evidence.GPUClaims) string) string {
		found := map[string]bool{}
		for _, one := range claims.GPUs {
			found[of(one)] = true
		}
		return "[" + strings.Join(slices.Sorted(maps.Keys(found)), ", ") + "]"
	}
	write("gpu:\n  required: true\n  arch: %s", all(func(one evidence.GPUClaims) string { return one.Arch }))
	write("  rim:\n    driver: %s     # learned, check it", all(func(one evidence.GPUClaims) string { return one.Driver }))
	write("    vbios: %s          # learned, check it", all(func(one evidence.GPUClaims) string { return one.VBIOS }))
	write("    measurements:      # learned, check them: take those out that NVIDIA's RIMs do not call active")
	for _, number := range slices.Sorted(maps.Keys(claims.GPUs[0].Measurements)) {
		write("      %d: %s", number, all(func(one evidence.GPUClaims) string { return one.Measurements[number] }))
	}
}
