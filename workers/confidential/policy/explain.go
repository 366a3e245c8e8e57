package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/workers/confidential/evidence"
)

// Explain says in sentences what the policy trusts and what it does not; warnings are
// rules that let more in than is good.
func (p *Policy) Explain() (trusted, limits, warnings []string) {
	if s := p.TEE.SNP; s != nil {
		for _, line := range slices.Sorted(maps.Keys(s.Products)) {
			parts := make([]string, 0, len(evidence.Firmware))
			for _, part := range evidence.Firmware {
				parts = append(parts, fmt.Sprintf("%s %d", part, s.Products[line][part]))
			}
			trusted = append(trusted, fmt.Sprintf("Guests of AMD SEV-SNP on %s, with at least %s, whose reports a %s signed.", line, strings.Join(parts, ", "), strings.Join(s.Keys, " or ")))
		}
		trusted = append(trusted, "Of those, guests whose launch measurement is "+among(s.Measurement)+".")
		if len(s.HostData) > 0 {
			trusted = append(trusted, "Their HOST_DATA is "+among(s.HostData)+".")
		} else {
			limits = append(limits, "What the host gave the SEV-SNP guest at its launch is not looked at: host_data is not set.")
		}
		warnings = append(warnings, warned(evidence.SNP, s.Allow)...)
		if s.Products["milan"] != nil {
			warnings = append(warnings, "milan: researchers have extracted keys that sign reports of Milan, so a report can be forged.")
		}
		if slices.Contains(s.VMPL, 1) || slices.Contains(s.VMPL, 2) || slices.Contains(s.VMPL, 3) {
			warnings = append(warnings, "vmpl: less privileged parts of the guest may ask for keys.")
		}
	}
	if t := p.TEE.TDX; t != nil {
		trusted = append(trusted, "Guests of Intel TDX with firmware that Intel calls UpToDate, whose MRTD is "+among(t.MRTD)+".")
		for _, register := range slices.Sorted(maps.Keys(t.RTMR)) {
			if t.RTMR[register][0] == Any {
				warnings = append(warnings, fmt.Sprintf("rtmr %s: it may hold anything, so what it measures is not checked.", register))
			} else {
				trusted = append(trusted, fmt.Sprintf("Their RTMR%s is %s.", register, among(t.RTMR[register])))
			}
		}
		warnings = append(warnings, warned(evidence.TDX, t.Allow)...)
	}
	gpus, unseen, risky := p.GPU.explain()
	trusted, warnings = append(trusted, gpus...), append(warnings, risky...)
	if _, limited := p.maxAge(); limited {
		trusted = append(trusted, "What the makers had not revoked, by lists of at most "+p.CollateralMaxAge+".")
	} else {
		warnings = append(warnings, "collateral_max_age is none: nobody looks whether a chip's key was revoked.")
	}
	limits = append(limits, fmt.Sprintf("A broker lets at most %d keys go in an hour, and %d in all.", p.Releases.PerHour, p.Releases.Total))
	trusted = append(trusted, "Until "+p.Expires.Format(time.RFC3339)+".", "Who built the measured images, and the makers' chips and firmware.")
	limits = append(limits, "Who runs the host, the network or the study server is not trusted.")
	return trusted, append(limits, unseen...), warnings
}

func among(list []string) string {
	if len(list) == 1 {
		return list[0]
	}
	return fmt.Sprintf("one of %d: %s", len(list), strings.Join(list, ", "))
}

// unprotected are what no policy protects from.
var unprotected = []string{
	"Somebody with the machine in their hands: interposers on memory have read keys of both makers.",
	"Firmware flaws that the versions above still have.",
	"What shows from outside: times, sizes, metrics and the study file.",
}

// Unprotected are what no policy protects from, in sentences.
func Unprotected() []string { return unprotected }

func warned(tee string, allow []string) (warnings []string) {
	for _, one := range allow {
		what := map[string]string{
			"debug": "the host can read such a guest's memory, so nothing is confidential.", "migrate": "such a guest may be moved to a machine that nobody appraised.",
			"smt": "threads of others may share such a guest's cores and see traces of its work.",
		}[one]
		warnings = append(warnings, tee+" allow "+one+": "+what)
	}
	return warnings
}

// Learned is a policy file that allows machines like the one with the claims, to be read
// and corrected by its owner. What weakens a guest is not learned, but for SMT.
func Learned(claims *evidence.Claims, now time.Time) string {
	var text strings.Builder
	write := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	write("# learned, check it: what this machine runs may be wrong already")
	write("version: 1\nexpires: %s\ncollateral_max_age: 30d", now.UTC().AddDate(0, 3, 0).Format(time.RFC3339))
	learnedGPUs(claims, write)
	write("tee:\n  %s:", claims.TEE)
	if claims.Debug || claims.Migration {
		write("    # the machine is refused: it was started for debugging or migration")
	}
	if claims.TEE == evidence.TDX {
		write("    mrtd: [%s]                # learned, check it\n    rtmr:", claims.Measurements["mrtd"])
		for i := range 3 {
			write("      %d: [%s]              # learned, check it", i, claims.Measurements[fmt.Sprint("rtmr", i)])
		}
		return text.String()
	}
	write("    products:")
	if claims.Product == "milan" {
		write("      # reports of Milan can be forged: better take it out")
	}
	write("      %s: {bootloader: %d, tee: %d, snp: %d, microcode: %d}   # learned, check it", claims.Product, claims.TCB["bootloader"], claims.TCB["tee"], claims.TCB["snp"], claims.TCB["microcode"])
	write("    measurement: [%s]   # learned, check it", claims.Measurements["measurement"])
	if host := claims.Measurements["host_data"]; strings.Trim(host, "0") != "" {
		write("    host_data: [%s]     # learned, check it", host)
	}
	if claims.SMT {
		write("    allow: [smt]        # learned, check it")
	}
	write("    vmpl: [%d]\n    keys: [%s]", claims.VMPL, claims.Key)
	return text.String()
}
