package search

import (
	"errors"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/search/grid"
	"github.com/tandem-tune/tandem/study/search/propose"
	"github.com/tandem-tune/tandem/study/space"
)

// Group is how the parameters of a group are searched (thesis 7.4.2).
type Group struct {
	// Method is the registered name.
	Method string `json:"method"`
}

// group is the search group that the parameter is in: the one it names, or that
// of its kind if there is one, or none (""), which has the settings' method.
func (s Settings) group(p space.Parameter) string {
	if p.Group != "" {
		return p.Group
	}
	if _, there := s.Groups[string(p.Kind)]; there {
		return string(p.Kind)
	}
	return ""
}

// method is the one of a group.
func (s Settings) method(group string) string {
	if group == "" {
		return s.Method
	}
	return s.Groups[group].Method
}

// uses reports whether some parameters are searched with the method.
func (s Settings) uses(method string) bool {
	return slices.ContainsFunc(s.Space.Parameters, func(p space.Parameter) bool { return s.method(s.group(p)) == method })
}

// part is a share of the space with a proposer of its own.
type part struct {
	key      string // its name in records
	name     string // for people
	path     string // of its method in the study file
	settings Settings
	cube     *space.Cube
	at       []int // its parameters in the whole space
	points   [][]float64
	proposer propose.Proposer
}

// parts divides the space. Groups whose methods learn have each a part of their
// own; those on a grid share one grid, so that it has every combination, and
// those on a Sobol sequence share one sequence, without which their coordinates
// would go together. Uniform draws are the same in one part as in several.
func (s Settings) parts() []*part {
	var parts []*part
	byKey := map[string]*part{}
	for i, p := range s.Space.Parameters {
		group := s.group(p)
		method := s.method(group)
		key := group
		if shared := []string{"grid", "sobol", "random"}; slices.Contains(shared, method) {
			key = "*" + method // no group has a name like that
		}
		one, known := byKey[key]
		if !known {
			one = &part{key: key, path: "search.method", settings: s}
			one.settings.Method, one.settings.Groups = method, nil
			one.settings.Space = space.Space{}
			// Methods with draws of their own must not draw the same.
			one.settings.Seed += uint64(len(parts)) * 0x9e3779b97f4a7c15
			byKey[key], parts = one, append(parts, one)
		}
		if group != "" && one.path == "search.method" {
			one.path = "search.groups." + group + ".method"
		}
		one.at = append(one.at, i)
		one.settings.Space.Parameters = append(one.settings.Space.Parameters, p)
	}
	for _, one := range parts {
		one.finish(s)
	}
	return parts
}

// finish names the part, and gives it the forbidden combinations that lie
// within it.
func (p *part) finish(whole Settings) {
	inside := map[string]bool{}
	var names []string
	for _, parameter := range p.settings.Space.Parameters {
		inside[parameter.Name] = true
		group := whole.group(parameter)
		if group == "" {
			group = "the others"
		}
		if !slices.Contains(names, group) {
			names = append(names, group)
		}
	}
	p.name = strings.Join(names, ", ")
	for _, combination := range whole.Space.Forbidden {
		if !slices.ContainsFunc(combination, func(c space.Condition) bool { return !inside[c.Parameter] }) {
			p.settings.Space.Forbidden = append(p.settings.Space.Forbidden, combination)
		}
	}
	p.cube = p.settings.Space.Cube()
}

// newProposer makes the proposer of valid settings.
func newProposer(settings Settings) (propose.Proposer, error) {
	parts := settings.parts()
	if len(parts) == 1 {
		p, err := methods()[parts[0].settings.Method](parts[0].settings)
		return p, parts[0].blame(err)
	}
	for _, one := range parts {
		make := methods()[one.settings.Method]
		if one.settings.Method == "grid" {
			make = func(s Settings) (propose.Proposer, error) { return grid.NewCycle(s.Space, s.Seed, s.GridPoints) }
		}
		p, err := make(one.settings)
		if err != nil {
			return nil, one.blame(err)
		}
		one.proposer = p
	}
	return &composite{parts: parts}, nil
}

// blame names the group's method where a fault of the method is told.
func (p *part) blame(err error) error {
	var told *problem.Error
	if errors.As(err, &told) {
		for i := range told.Fields {
			if told.Fields[i].Path == "search.method" {
				told.Fields[i].Path = p.path
			}
		}
	}
	return err
}
