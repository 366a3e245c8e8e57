package poolcmd

import (
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// TestWhatAReservationNamesAndIsNotThere is said when it is made and in the list.
func TestWhatAReservationNamesAndIsNotThere(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
	one := protocol.Reservation{ID: "r1", User: "adda", Worker: "rack-9", From: from, To: from.Add(time.Hour), Active: true}
	for _, c := range []struct {
		worker, user bool
		made, listed []string
	}{
		{false, false, nil, []string{"holds\n"}},
		{true, false, []string{"No worker named rack-9 is connected now"}, []string{"holds; no such worker is connected\n"}},
		{false, true, []string{"No token is user adda's now"}, []string{"holds; no token is the user's\n"}},
		{true, true, []string{"No worker named rack-9 is connected now", "No token is user adda's now"}, []string{"holds; no such worker is connected; no token is the user's\n"}},
	} {
		one.WorkerAbsent, one.UserAbsent = c.worker, c.user
		made, list := shownAbsent(one), strings.Builder{}
		if err := printReservations(&list, []protocol.Reservation{one}); err != nil {
			t.Fatal(err)
		}
		if strings.Count(made, "\n") != len(c.made) {
			t.Errorf("%+v is said to be %q, want %d lines", c, made, len(c.made))
		}
		for _, want := range c.made {
			if !strings.Contains(made, want) {
				t.Errorf("%q, want %q in it", made, want)
			}
		}
		for _, want := range c.listed {
			if !strings.Contains(list.String(), want) {
				t.Errorf("%q, want %q in it", list.String(), want)
			}
		}
	}
	large := protocol.Reservation{User: "ada", GPUs: 40, GPUsAbsent: 28}
	if said := shownAbsent(large); !strings.Contains(said, "The connected workers have 12 GPUs in all") {
		t.Errorf("more GPUs than there are: %q", said)
	}
	if got := shownLimits(protocol.QuotaView{User: "adda", Quota: &protocol.Quota{Trials: 1}, UserAbsent: true}); got != "1 trial at once; no token is the user's" {
		t.Errorf("a quota of nobody is shown as %q", got)
	}
}
