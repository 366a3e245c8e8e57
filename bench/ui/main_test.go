package main

import "testing"

func TestOptions(t *testing.T) {
	for name, arguments := range map[string][]string{
		"no number": {"-trials", "many"}, "one page": {"-trials", "100"}, "too few runs": {"-runs", "4"}, "nobody reports": {"-load", "0"}, "nobody makes it": {"-clients", "0"},
	} {
		if o, err := parse(arguments); err == nil {
			t.Errorf("%s: accepted as %+v", name, o)
		}
	}
	if o, err := parse([]string{"-trials", "500"}); err != nil || o.trials != 500 || o.runs < 5 {
		t.Errorf("got %+v, %v", o, err)
	}
}
