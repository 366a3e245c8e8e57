package workercmd

import "testing"

func TestSlotsFlag(t *testing.T) {
	tests := []struct {
		given []string
		want  SlotCount
		shown string
		fails bool
	}{
		{nil, 0, "auto", false},
		{[]string{"--slots", "auto"}, 0, "auto", false},
		{[]string{"--slots=0"}, 0, "auto", false},
		{[]string{"--slots", "3"}, 3, "3", false},
		{[]string{"--slots", "1024"}, 1024, "1024", false},
		{[]string{"--slots", "1025"}, 0, "", true},
		{[]string{"--slots", "-1"}, 0, "", true},
		{[]string{"--slots", "many"}, 0, "", true},
	}
	for _, test := range tests {
		command := Command()
		err := command.ParseFlags(test.given)
		flag := command.Flags().Lookup("slots")
		if test.fails != (err != nil) {
			t.Errorf("%s %v: got %v", command.Name(), test.given, err)
		}
		if !test.fails && flag.Value.String() != test.shown {
			t.Errorf("%s %v: it is shown as %s", command.Name(), test.given, flag.Value)
		}
		options := Options{}
		if err := options.Slots.Set("auto"); err != nil {
			t.Fatal(err)
		}
		if len(test.given) == 2 && !test.fails {
			if err := options.Slots.Set(test.given[1]); err != nil || options.Slots != test.want {
				t.Errorf("%v: got %d, %v", test.given, options.Slots, err)
			}
		}
		if made, err := options.Agent(t.Context(), nil, nil); err != nil || made.Elastic != (options.Slots == 0) || made.Slots != int(options.Slots) {
			t.Errorf("%v: the agent gets %d slots, elastic %v", test.given, made.Slots, made.Elastic)
		}
	}
}

// A worker runs the probing tasks unless it is told not to.
func TestAWorkerProbesItsMachineOnce(t *testing.T) {
	for want, given := range map[string][]string{"once": nil, "never": {"--probe", "never"}, "always": {"--probe=always"}} {
		command := Command()
		if err := command.ParseFlags(given); err != nil {
			t.Fatal(err)
		}
		if got := command.Flags().Lookup("probe").Value.String(); got != want {
			t.Errorf("%v: %q, want %q", given, got, want)
		}
	}
}
