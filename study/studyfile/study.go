package studyfile

import (
	"errors"
	"regexp"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/studyfile/confidential"
	"github.com/tandem-tune/tandem/study/studyfile/encryption"
	"github.com/tandem-tune/tandem/study/studyfile/inference"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

// readStudy reads the whole file.
func readStudy(d *tree.Decoder, root *tree.Node) definition.Definition {
	var def definition.Definition
	if root.Kind != tree.Mapping {
		d.Fault(tree.WholeFile, root, "must be a mapping of fields such as name, objective and space, not %s", root.Is())
		return def
	}
	s, _ := d.Open("", root,
		"name", "description", "command", "processes", "service", "directory", "code", "environment", "secrets", "encryption", "confidential", "sandbox", "epoch_timeout_seconds", "stall_seconds", "stall_ends", "objective", "constraints",
		"space", "forbidden", "system", "similarity", "inference", "budget", "search", "stop", "when", "retry", "placement", "priority", "approximation", "response_seconds", "sprint", "parallel", "preempt", "resources", "hooks")
	readName(s, &def.Name)
	s.Text("description", 4096, &def.Description)
	def.Service = readService(s)
	def.Command = readCommand(s, def.Service)
	def.Processes = readProcesses(s, def)
	s.Text("directory", 4096, &def.Directory)
	s.Text("code", 64, &def.Code)
	def.Environment = readEnvironment(s)
	def.Secrets = readSecrets(s, def.Environment)
	def.Encryption = encryption.Read(s, def.Command)
	def.Sandbox = readSandbox(s, def.Processes)
	s.Number("epoch_timeout_seconds", 0, year, &def.EpochTimeoutSeconds)
	readStall(s, &def)
	def.Objectives = readObjectives(s)
	def.Constraints = readConstraints(s)
	def.Space = readSpace(s)
	def.System = readSystem(s, len(def.Command) > 0 && def.Service == nil)
	def.Inference = inference.Read(s)
	def.Budget = readBudget(s, def.Service != nil)
	def.Search = readSearch(s, def.Budget.Eta, def.Service != nil)
	def.Stop = readStop(s, def)
	def.When = readWhen(s)
	def.Retry = readRetry(s)
	readPriority(s, &def)
	checkApproximation(d, def)
	s.Whole("parallel", 1, definition.MaxParallel, &def.Parallel)
	s.Flag("preempt", &def.Preempt)
	def.Resources = readResources(s, def.System)
	def.Similarity = readSimilarity(s, def)
	def.Placement = readPlacement(s)
	def.Hooks = readHooks(s)
	checkService(s, &def)
	confidential.Read(s, &def)
	inference.Check(s, def)
	checkDefinition(d, def)
	return def
}

// year bounds spans of time, in seconds.
const year = 366 * 24 * 3600

// checkDefinition runs the checks of the packages that own the parts.
func checkDefinition(d *tree.Decoder, def definition.Definition) {
	before := len(d.Faults)
	faults := append(def.Space.Validate("space"), def.Budget.Validate("budget")...)
	for _, fault := range faults {
		if !d.Places.IsSpoilt(fault.Path) {
			d.Report(fault)
		}
	}
	if before > 0 || len(faults) > 0 {
		return
	}
	if faults := checkInitial(def); len(faults) > 0 {
		d.Report(faults...)
		return
	}
	// What only the whole shows, such as a grid with too many points.
	if _, err := search.New(def.SearchSettings()); err != nil {
		addFaults(d, err)
	}
}

// addFaults takes over the faults of an error.
func addFaults(d *tree.Decoder, err error) {
	var e *problem.Error
	if !errors.As(err, &e) || len(e.Fields) == 0 {
		d.Faults = append(d.Faults, problem.Field{Path: "search", Message: err.Error()})
		return
	}
	d.Report(e.Fields...)
}

// readStall reads what a script without a sign of life comes to.
func readStall(s tree.Section, def *definition.Definition) {
	s.Number("stall_seconds", 0, year, &def.StallSeconds)
	s.Flag("stall_ends", &def.StallEnds)
	if n, at := s.Get("stall_ends"); n != nil && def.StallEnds && def.StallSeconds == 0 {
		s.Fault(at, n, "needs stall_seconds, the time without a sign of life after which the script is ended")
	}
}

func readName(s tree.Section, target *string) {
	const wanted = "must be 1 to 128 characters, a letter or a digit and then letters, digits and . _ -"
	n, at := s.Need("name", "it "+wanted)
	if n == nil {
		return
	}
	before := len(s.Faults)
	s.TextOf(at, n, tree.MaxBytes, target)
	if valid, _ := regexp.MatchString(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`, *target); !valid && len(s.Faults) == before {
		s.Fault(at, n, wanted)
	}
}
