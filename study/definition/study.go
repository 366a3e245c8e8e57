package definition

import (
	"errors"
	"regexp"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/search"
)

// study reads the whole file.
func (d *decoder) study(root *node) Definition {
	var def Definition
	if root.kind != mapping {
		d.fault(wholeFile, root, "must be a mapping of fields such as name, objective and space, not %s", root.is())
		return def
	}
	s, _ := d.section("", root,
		"name", "description", "command", "directory", "environment", "secrets", "sandbox", "epoch_timeout_seconds", "stall_seconds", "stall_ends", "objective", "constraints",
		"space", "forbidden", "system", "similarity", "inference", "budget", "search", "stop", "retry", "placement", "priority", "approximation", "response_seconds", "sprint", "parallel", "preempt", "resources")
	d.name(s, &def.Name)
	s.text("description", 4096, &def.Description)
	def.Command = d.command(s)
	s.text("directory", 4096, &def.Directory)
	def.Environment = d.environment(s)
	def.Secrets = d.secrets(s, def.Environment)
	def.Sandbox = d.sandbox(s)
	s.number("epoch_timeout_seconds", 0, year, &def.EpochTimeoutSeconds)
	d.stall(s, &def)
	def.Objectives = d.objectives(s)
	def.Constraints = d.constraints(s)
	def.Space = d.space(s)
	def.System = d.system(s)
	def.Similarity = d.similarity(s, def.System)
	def.Inference = d.inference(s)
	def.Budget = d.budget(s)
	def.Search = d.search(s, def.Budget.Eta)
	def.Stop = d.stop(s, def)
	def.Retry = d.retry(s)
	d.priority(s, &def)
	d.checkApproximation(def)
	s.whole("parallel", 1, maxParallel, &def.Parallel)
	s.flag("preempt", &def.Preempt)
	def.Resources = d.resources(s, def.System)
	def.Placement = d.placement(s)
	d.check(def)
	return def
}

// year bounds spans of time, in seconds.
const year = 366 * 24 * 3600

// check runs the checks of the packages that own the parts.
func (d *decoder) check(def Definition) {
	before := len(d.faults)
	faults := append(def.Space.Validate("space"), def.Budget.Validate("budget")...)
	for _, fault := range faults {
		if !d.places.isSpoilt(fault.Path) {
			d.faults = append(d.faults, d.places.locate(fault))
		}
	}
	if before > 0 || len(faults) > 0 {
		return
	}
	if faults := checkInitial(def); len(faults) > 0 {
		for _, fault := range faults {
			d.faults = append(d.faults, d.places.locate(fault))
		}
		return
	}
	// What only the whole shows, such as a grid with too many points.
	if _, err := search.New(def.SearchSettings()); err != nil {
		d.refused(err)
	}
}

// refused takes over the faults of an error.
func (d *decoder) refused(err error) {
	var e *problem.Error
	if !errors.As(err, &e) || len(e.Fields) == 0 {
		d.faults = append(d.faults, problem.Field{Path: "search", Message: err.Error()})
		return
	}
	for _, fault := range e.Fields {
		d.faults = append(d.faults, d.places.locate(fault))
	}
}

// stall reads what a script without a sign of life comes to.
func (d *decoder) stall(s section, def *Definition) {
	s.number("stall_seconds", 0, year, &def.StallSeconds)
	s.flag("stall_ends", &def.StallEnds)
	if n, at := s.get("stall_ends"); n != nil && def.StallEnds && def.StallSeconds == 0 {
		d.fault(at, n, "needs stall_seconds, the time without a sign of life after which the script is ended")
	}
}

func (d *decoder) name(s section, target *string) {
	const wanted = "must be 1 to 128 characters, a letter or a digit and then letters, digits and . _ -"
	n, at := s.need("name", "it "+wanted)
	if n == nil {
		return
	}
	before := len(d.faults)
	d.textOf(at, n, maxBytes, target)
	if valid, _ := regexp.MatchString(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`, *target); !valid && len(d.faults) == before {
		d.fault(at, n, wanted)
	}
}
