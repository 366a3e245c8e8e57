package runcmd

import "testing"

func TestRunTakesSlots(t *testing.T) {
	for _, test := range []struct {
		given []string
		shown string
		fails bool
	}{
		{nil, "auto", false},
		{[]string{"--slots", "auto"}, "auto", false},
		{[]string{"--slots=0"}, "auto", false},
		{[]string{"--slots", "3"}, "3", false},
		{[]string{"--slots", "1024"}, "1024", false},
		{[]string{"--slots", "1025"}, "", true},
		{[]string{"--slots", "-1"}, "", true},
		{[]string{"--slots", "many"}, "", true},
	} {
		command := Command()
		err := command.ParseFlags(test.given)
		if test.fails != (err != nil) {
			t.Errorf("%v: got %v", test.given, err)
		}
		if flag := command.Flags().Lookup("slots"); !test.fails && flag.Value.String() != test.shown {
			t.Errorf("%v: it is shown as %s", test.given, flag.Value)
		}
	}
}
