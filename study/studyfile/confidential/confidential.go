// Package confidential reads the section confidential of study files.
package confidential

import (
	"math"
	"regexp"
	"slices"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

// mostMetrics bounds the metrics of a study: each tells something.
const mostMetrics = 32

var policyForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Read reads what may leave a study's machines, after all else of the file.
func Read(s tree.Section, def *definition.Definition) {
	n, at := s.Get("confidential")
	if n == nil {
		return
	}
	part, ok := s.Open(at, n, "policy", "metrics", "log")
	if !ok {
		return
	}
	for _, field := range []string{"service", "inference"} {
		if n, at := s.Get(field); n != nil {
			s.Fault(at, n, "does not go with confidential, whose trials have no network and send no models: leave it out")
		}
	}
	if n, at := s.Get("system"); n == nil {
		def.System.Word = definition.Off
	} else if def.System.Word == definition.Automatic || def.System.Tuning != nil {
		s.Fault(at, n, "would be tuned by what trials are measured to do, which confidential ones do not tell: put off, or constants such as cores: 2")
	}
	if n, _ := s.Get("encryption"); n == nil {
		s.Fault(at, part.Node, "needs encryption.recipients: the key that the broker releases comes first")
	}
	made := &definition.Confidential{Log: definition.LogNone}
	policy, policyAt := part.Need("policy", "the id that 'tandem policy sign' prints")
	if policy != nil {
		if made.Policy, ok = part.Written(policyAt, policy, 128); ok && !policyForm.MatchString(made.Policy) {
			part.Wrong(policyAt, policy, "a policy's id, 64 hexadecimal digits; 'tandem policy sign' prints it")
		}
	}
	before := len(s.Faults)
	part.Text("log", 32, &made.Log)
	if n, at := part.Get("log"); n != nil && len(s.Faults) == before && made.Log != definition.LogNone && made.Log != definition.LogTail {
		part.Fault(at, n, "must be %s, or %s: the end of a failed script's output, encrypted to the recipients", definition.LogNone, definition.LogTail)
	}
	readMetrics(part, made, def.NeedsReported(def.Names()))
	def.Confidential, def.Sandbox = made, protocol.StrictSandbox
}

// readMetrics reads how precisely each metric is told; those that are needed must be there.
func readMetrics(part tree.Section, made *definition.Confidential, needed []string) {
	n, at := part.Need("metrics", "what scripts may report, such as {accuracy: {low: 0, high: 1, round: 0.001}}")
	if n == nil {
		return
	}
	if n.Kind != tree.Mapping || len(n.Entries) == 0 || len(n.Entries) > mostMetrics {
		part.Wrong(at, n, "1 to 32 metrics, such as {accuracy: {low: 0, high: 1, round: 0.001}}")
		return
	}
	made.Metrics = make(map[string]definition.Told, len(n.Entries))
	for _, entry := range n.Entries {
		where := tree.Join(at, entry.Key)
		one, ok := part.Open(where, entry.Value, "low", "high", "round")
		if !ok {
			continue
		}
		var told definition.Told
		before := len(part.Faults)
		for i, target := range []*float64{&told.Low, &told.High, &told.Round} {
			if n, at := one.Need([]string{"low", "high", "round"}[i], "a number; values are told as multiples of round, from low to high"); n != nil {
				one.NumberOf(at, n, -math.MaxFloat32, math.MaxFloat32, target)
			}
		}
		steps := max(math.Abs(told.Low), math.Abs(told.High)) / told.Round
		if len(part.Faults) == before && !(told.Low < told.High && told.Round > 0 && told.Round <= told.High-told.Low && steps <= definition.MostSteps) {
			part.Fault(where, entry.Value, "must have low below high, and a round above 0 and at most their difference, of which low and high are at most a billion times")
		}
		made.Metrics[entry.Key] = told
	}
	for _, name := range needed {
		if _, declared := made.Metrics[name]; !declared && !slices.ContainsFunc(n.Entries, func(e tree.Entry) bool { return e.Key == name }) {
			part.Fault(at, n, "lacks %s, which the objective or a constraint needs: add it with low, high and round", name)
		}
	}
}
