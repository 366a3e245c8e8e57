package process

import (
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
)

func TestAMissingModuleIsExplained(t *testing.T) {
	t.Parallel()
	const want = "the Python that ran the script has no module tandem: install it there, or start the worker with --path"
	for last, told := range map[string]bool{
		"ModuleNotFoundError: No module named 'tandem'": true,
		"ValueError: bad": false,
	} {
		request := protocol.FinishRequest{Outcome: protocol.CommandFailed, Reason: "exit code 1"}
		got := Host{}.Explain(request, []string{"Traceback", last}, "/study", "").Reason
		if strings.Contains(got, want) != told {
			t.Errorf("%s: %s", last, got)
		}
	}
	if got := (Host{}).Explain(protocol.FinishRequest{Outcome: protocol.CommandFailed}, nil, "", "").Reason; got != "" {
		t.Errorf("of nothing it says %s", got)
	}
}
