package search_test

import (
	"slices"
	"testing"

	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/search/searchtest"
)

func TestMethodsConform(t *testing.T) {
	for _, name := range search.Names() {
		t.Run(name, func(t *testing.T) {
			searchtest.Run(t, searchtest.Subject{
				New: func(settings search.Settings) (search.Method, error) {
					settings.Method = name
					return search.New(settings)
				},
				Ends: name == "grid", One: name == "cma-es" || name == "gp",
			})
		})
	}
}

// Two groups of parameters with methods of their own, in the same game. A
// parameter goes with the one it depends on.
func TestGroupsConform(t *testing.T) {
	for _, methods := range [][2]string{{"bohb", "cma-es"}, {"tpe", "sobol"}, {"grid", "random"}, {"cma-es", "grid"}} {
		t.Run(methods[0]+" and "+methods[1], func(t *testing.T) {
			searchtest.Run(t, searchtest.Subject{
				New: func(settings search.Settings) (search.Method, error) {
					settings.Method = methods[0]
					settings.Groups = map[string]search.Group{"other": {Method: methods[1]}}
					parameters := slices.Clone(settings.Space.Parameters)
					parameters[len(parameters)-1].Group = "other"
					settings.Space.Parameters = parameters
					return search.New(settings)
				},
				// A grid that is all there is would end.
				Ends: methods[0] == "grid" || methods[1] == "grid",
				One:  slices.Contains(methods[:], "cma-es"),
			})
		})
	}
}
