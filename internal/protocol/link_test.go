package protocol_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// TestTheSchemaHasTheBoundsOfALinksLife, which stand in tags there.
func TestTheSchemaHasTheBoundsOfALinksLife(t *testing.T) {
	t.Parallel()
	field, _ := reflect.TypeFor[protocol.LinkRequest]().FieldByName("TTLSeconds")
	for tag, want := range map[string]int{"minimum": protocol.MinLinkSeconds, "maximum": protocol.MaxLinkSeconds} {
		if got := field.Tag.Get(tag); got != fmt.Sprint(want) {
			t.Errorf("%s is %s, want %d", tag, got, want)
		}
	}
}
