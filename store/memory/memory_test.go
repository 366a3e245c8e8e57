package memory_test

import (
	"testing"

	"github.com/tandem-tune/tandem/store/memory"
	"github.com/tandem-tune/tandem/store/storetest"
	"github.com/tandem-tune/tandem/store/storetest/model"
)

func TestMemoryIsAStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) model.Everything { return memory.New() })
}
