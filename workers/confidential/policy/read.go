package policy

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
	"github.com/tandem-tune/tandem/workers/confidential/evidence"
)

// maxBytes bounds a policy file, mostList a list in it.
const (
	maxBytes = 64 << 10
	mostList = 64
	mostText = 128
)

// What may be written out, by the kind of machine.
var (
	weakens  = map[string][]string{evidence.SNP: {"debug", "migrate", "smt"}, evidence.TDX: {"debug", "migrate"}}
	products = []string{"genoa", "milan"}
)

// Parse reads a policy file, YAML or JSON. The error names each fault with its field, its
// line, the value and the fix. Fields that are not known are refused: a rule that is
// misspelt must not be one that is not kept.
func Parse(data []byte) (*Policy, error) {
	if len(data) > maxBytes || len(bytes.TrimSpace(data)) == 0 {
		return nil, problem.New(problem.Invalid, "the policy has %d bytes: 1 to %d", len(data), maxBytes)
	}
	read := tree.ParseYAML
	if strings.HasPrefix(strings.TrimSpace(string(data)), "{") {
		read = tree.ParseJSON
	}
	root, faults, err := read(data)
	if unreadable, ok := errors.AsType[*problem.Error](err); ok {
		return nil, problem.WithFields("the policy cannot be read", unreadable.Fields)
	}
	if root.Kind != tree.Mapping {
		return nil, problem.New(problem.Invalid, "the policy must be a mapping of version, expires, collateral_max_age, releases and tee, not %s", root.Is())
	}
	found := &Policy{}
	d := &tree.Decoder{Faults: faults, Of: "a policy"}
	if s, ok := d.Open("", root, "version", "expires", "collateral_max_age", "releases", "gpu", "tee"); ok {
		found.read(s)
	}
	if len(d.Faults) > 0 {
		return nil, problem.WithFields("the policy has faults", d.Faults)
	}
	return found, nil
}

func (p *Policy) read(s tree.Section) {
	p.Version = 1
	if n, at := s.Need("version", "write version: 1"); n != nil && (n.Kind != tree.Number || n.Raw != "1") {
		s.Fault(at, n, "must be 1, the only version that there is")
	}
	if n, at := s.Need("expires", "say when the policy ends, such as 2027-03-01T00:00:00Z"); n != nil {
		text, _ := s.Written(at, n, mostText)
		end, err := time.Parse(time.RFC3339, text)
		if p.Expires = end.UTC().Truncate(time.Second); err != nil || p.Expires.Year() < 2000 || p.Expires.Year() > 9999 {
			s.Fault(at, n, "must be a time such as 2027-03-01T00:00:00Z")
		}
	}
	p.CollateralMaxAge = "30d"
	if n, at := s.Get("collateral_max_age"); n != nil {
		p.CollateralMaxAge, _ = s.Written(at, n, mostText)
		if _, err := days(p.CollateralMaxAge); err != nil && p.CollateralMaxAge != "none" {
			s.Fault(at, n, "must be days, such as 30d, or none")
		}
	}
	p.Releases = Releases{PerHour: 200, Total: 5000}
	if n, at := s.Get("releases"); n != nil {
		if part, ok := s.Open(at, n, "per_hour", "total"); ok {
			part.Whole("per_hour", 1, 100_000, &p.Releases.PerHour)
			part.Whole("total", 1, 10_000_000, &p.Releases.Total)
		}
	}
	if n, at := s.Get("gpu"); n != nil {
		p.GPU = readGPU(s, at, n)
	}
	n, at := s.Need("tee", "name the machines: sev-snp, tdx or both")
	if n == nil {
		return
	}
	tee, ok := s.Open(at, n, evidence.SNP, evidence.TDX)
	if !ok {
		return
	}
	if n, at := tee.Get(evidence.SNP); n != nil {
		p.TEE.SNP = readSNP(s, at, n)
	}
	if n, at := tee.Get(evidence.TDX); n != nil {
		p.TEE.TDX = readTDX(s, at, n)
		if p.CollateralMaxAge == "none" {
			s.Fault(at, n, "needs collateral_max_age in days: without Intel's collateral nobody knows which enclave signed a quote")
		}
	}
	if p.TEE == (TEE{}) {
		s.Fault(at, tee.Node, "allows no machine: it needs sev-snp, tdx or both")
	}
}

func readSNP(d tree.Section, at string, n *tree.Node) *SNP {
	s, ok := d.Open(at, n, "products", "measurement", "host_data", "allow", "single_socket", "vmpl", "keys")
	if !ok {
		return nil
	}
	found := &SNP{
		Allow: words(s, "allow", weakens[evidence.SNP], nil), HostData: hashes(s, "host_data", 32, false),
		Keys: words(s, "keys", []string{"vcek", "vlek"}, []string{"vcek"}), Measurement: hashes(s, "measurement", 48, true), Products: Products{},
	}
	s.Flag("single_socket", &found.SingleSocket)
	for _, one := range words(s, "vmpl", []string{"0", "1", "2", "3"}, []string{"0"}) {
		level, _ := strconv.Atoi(one) // it is among these
		found.VMPL = append(found.VMPL, level)
	}
	list, at := s.Need("products", "name processors with their oldest firmware, such as {genoa: {bootloader: 9, tee: 0, snp: 21, microcode: 72}}")
	if list == nil {
		return found
	}
	lines, ok := s.Open(at, list, products...)
	if ok && len(list.Entries) == 0 {
		s.Fault(at, list, "allows no processor: name genoa, or milan")
	}
	for _, line := range products {
		n, at := lines.Get(line)
		if n == nil || !ok {
			continue
		}
		parts, ok := s.Open(at, n, evidence.Firmware...)
		found.Products[line] = map[string]int{}
		for _, part := range evidence.Firmware {
			version := 0
			if !ok {
				break
			}
			if n, at := parts.Need(part, "write the oldest version, 0 to 255"); n != nil {
				s.WholeOf(at, n, 0, 255, &version)
			}
			found.Products[line][part] = version
		}
	}
	return found
}

func readTDX(d tree.Section, at string, n *tree.Node) *TDX {
	s, ok := d.Open(at, n, "mrtd", "rtmr", "allow")
	if !ok {
		return nil
	}
	found := &TDX{Allow: words(s, "allow", weakens[evidence.TDX], nil), MRTD: hashes(s, "mrtd", 48, true), RTMR: map[string][]string{}}
	list, at := s.Need("rtmr", "say what registers 0, 1 and 2 must hold: firmware's settings, kernel and command line")
	if list == nil {
		return found
	}
	registers, ok := s.Open(at, list, "0", "1", "2", "3")
	for _, register := range []string{"0", "1", "2", "3"} {
		if !ok {
			break
		}
		n, at := registers.Get(register)
		if n == nil && register == "3" {
			continue
		}
		found.RTMR[register] = read(registers, register, true, "hashes of 96 hexadecimal digits, or any alone", func(one string) bool { return one == Any || hash(48).MatchString(one) })
		if len(found.RTMR[register]) > 1 && slices.Contains(found.RTMR[register], Any) {
			s.Fault(at, n, "has any and hashes: take any out, or the hashes")
		}
	}
	return found
}

// hashes reads a list of hashes of the size, in hexadecimal, and sorts it.
func hashes(s tree.Section, name string, size int, needed bool) []string {
	return read(s, name, needed, fmt.Sprintf("hashes of %d hexadecimal digits", 2*size), hash(size).MatchString)
}

func hash(size int) *regexp.Regexp { return regexp.MustCompile(fmt.Sprintf("^[0-9a-f]{%d}$", 2*size)) }

// words reads a list of what is known, and sorts it.
func words(s tree.Section, name string, known, otherwise []string) []string {
	if n, _ := s.Get(name); n == nil {
		return otherwise
	}
	return read(s, name, false, strings.Join(known, ", "), func(one string) bool { return slices.Contains(known, one) })
}

func read(s tree.Section, name string, needed bool, wanted string, good func(string) bool) []string {
	n, at := s.Get(name)
	switch {
	case n == nil && needed:
		s.Need(name, "it must be a list of "+wanted)
		return nil
	case n == nil:
		return nil
	case n.Kind != tree.List || len(n.Items) == 0 || len(n.Items) > mostList:
		s.Wrong(at, n, fmt.Sprintf("a list of 1 to %d: %s", mostList, wanted))
		return nil
	}
	found := map[string]bool{}
	for i, item := range n.Items {
		one, ok := s.Written(tree.Index(at, i), item, mostText)
		one = strings.ToLower(one)
		switch {
		case !ok:
		case !good(one):
			s.Fault(tree.Index(at, i), item, "must be one of: %s", wanted)
		case found[one]:
			s.Fault(tree.Index(at, i), item, "is there twice: take one out")
		}
		found[one] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// days reads 30d.
func days(text string) (time.Duration, error) {
	count, err := strconv.ParseUint(strings.TrimSuffix(text, "d"), 10, 12)
	if err != nil || count == 0 || !strings.HasSuffix(text, "d") || strconv.FormatUint(count, 10)+"d" != text {
		return 0, fmt.Errorf("%q is no number of days", text)
	}
	return time.Duration(count) * 24 * time.Hour, nil
}
