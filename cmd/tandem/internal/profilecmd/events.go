package profilecmd

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/profiler/perf"
)

// EventList is the flag --events.
type EventList []perf.Event

// AddEventsFlag adds the flag to a command.
func AddEventsFlag(command *cobra.Command, events *EventList) {
	command.Flags().Var(events, "events", "events to count: names, kinds (hardware, cache, software, pmu), or beginnings with * (default: all)")
}

// chosen is what to count: all events without the flag.
func (l EventList) chosen() []perf.Event {
	if l == nil {
		return perf.Events()
	}
	return l
}

// Type is what the help calls it.
func (l *EventList) Type() string { return "names" }

// String is the flag's value before it is set.
func (l *EventList) String() string { return "" }

// Set adds events. A name that this machine does not know is a mistake.
func (l *EventList) Set(text string) error {
	var names []string
	for _, event := range *l {
		names = append(names, event.Name)
	}
	selected, unknown := perf.SelectEvents(append(names, strings.Split(text, ",")...))
	if len(unknown) > 0 {
		return fmt.Errorf("no event is called %s; 'tandem profile --json -- true' lists all of this machine", unknown[0])
	}
	*l = selected
	return nil
}
