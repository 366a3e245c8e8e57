package memory_test

import (
	"testing"

	"github.com/tandem-tune/tandem/store/memory"
	"github.com/tandem-tune/tandem/store/storetest"
)

func TestMemoryIsAStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Everything { return memory.New() })
}
