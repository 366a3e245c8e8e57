package memory_test

import (
	"context"
	"fmt"
	"time"

	"github.com/tandem-tune/tandem/store/memory"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/journal"
)

// What a use case writes is one change. A store applies all of it or nothing: the
// second change here takes a sequence that is taken, so its study is not there.
func ExampleStore_Apply() {
	ctx, store, now := context.Background(), memory.New(), time.Unix(0, 0).UTC()
	created := func(id string) journal.Change {
		return journal.Change{
			Insert: &journal.Study{ID: id, Definition: definition.Definition{Name: id}, Status: "running", Created: now},
			Events: []journal.Event{{Study: "first", Sequence: 1, At: now, Kind: "study"}},
		}
	}
	fmt.Println(store.Apply(ctx, created("first")))
	fmt.Println(store.Apply(ctx, created("second")) != nil)
	studies, _ := store.Studies(ctx)
	for _, one := range studies {
		fmt.Println(one.ID)
	}
	// Output:
	// <nil>
	// true
	// first
}
