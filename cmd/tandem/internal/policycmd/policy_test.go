package policycmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-sev-guest/verify/testdata"
	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/sealed"
	"github.com/tandem-tune/tandem/workers/confidential/evidencetest"
)

// A user packs real reports, learns policies, signs them and checks machines by them.
func TestMachinesAreCheckedOnTheCommandLine(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name string, content []byte) {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	key, _, err := sealed.Create(false)
	if err != nil {
		t.Fatal(err)
	}
	write("owner.key", []byte(key))
	write("report", testdata.AttestationBytes)
	write("vcek", testdata.VcekBytes)
	write("quote", evidencetest.RecordedQuote())
	do := func(code int, line, want string) string {
		t.Helper()
		root := &cobra.Command{Use: "tandem"}
		root.AddCommand(Command())
		var out, failed bytes.Buffer
		got := term.Execute(t.Context(), root, append([]string{"policy"}, strings.Fields(line)...), &out, &failed)
		if got != code || !strings.Contains(out.String()+failed.String(), want) {
			t.Fatalf("tandem policy %s: %d without %q:\n%s%s", line, got, want, out.String(), failed.String())
		}
		return out.String()
	}
	at := " --at 2023-07-01T00:00:00Z"
	write("milan.json", []byte(do(0, "evidence report --certificate vcek", "sev-snp")))
	write("tdx.json", []byte(do(0, "evidence quote", "tdx")))
	write("learned.yaml", []byte(do(0, "from-evidence milan.json"+at, "learned, check it")))
	write("tdx.yaml", []byte(do(0, "from-evidence tdx.json"+at, "rtmr")))
	gpu := evidencetest.RecordedGPU()
	text, _ := json.Marshal(map[string]any{"result_code": 0, "evidences": []any{map[string]any{"arch": "HOPPER", "evidence": gpu.Report, "certificate": gpu.Chain}}})
	write("gpus", text)
	write("gpu.json", []byte(do(0, "evidence report --certificate vcek --gpus gpus", "\"gpu\":[{")))
	write("gpu.yaml", []byte(strings.NewReplacer("[smt]", "[smt, debug]", "30d", "none").Replace(do(0, "from-evidence gpu.json"+at, "driver: [550.90.07]"))))
	do(0, "verify gpu.yaml gpu.json"+at, "Allowed: the report matches policy")
	do(1, "verify gpu.yaml milan.json"+at, "refused: gpu_missing")
	do(0, "explain gpu.yaml", "GPUs of NVIDIA, hopper")
	do(2, "evidence report --certificate vcek --gpus report", "nvattest")
	do(1, "verify learned.yaml milan.json"+at, "refused: debug_guest")
	do(1, "verify tdx.yaml tdx.json"+at, "refused: collateral_stale")
	do(1, "verify tdx.yaml milan.json"+at, "refused: product_not_allowed")
	learned, _ := os.ReadFile("learned.yaml")
	write("policy.yaml", []byte(strings.NewReplacer("[smt]", "[smt, debug]", "30d", "none").Replace(string(learned))))
	do(0, "verify policy.yaml milan.json"+at, "Allowed: the report matches policy")
	do(1, "verify policy.yaml milan.json --at 2060-07-01T00:00:00Z", "refused: expired_chain")
	do(1, "verify policy.yaml milan.json --report-data "+strings.Repeat("00", 64)+at, "refused: wrong_binding")
	do(0, fmt.Sprintf("verify policy.yaml milan.json --report-data %x", testdata.AttestationBytes[0x50:0x90])+at, "made for this request")
	signed := do(0, "sign policy.yaml --identity owner.key", "signature")
	write("signed.json", []byte(signed))
	_, signer, _ := strings.Cut(signed, `"signer":"`)
	signer, _, _ = strings.Cut(signer, `"`)
	do(0, "explain signed.json", "Signed by "+signer)
	do(0, "explain policy.yaml", "The policy is not signed")
	do(0, "verify signed.json milan.json --owner "+signer+at, "Allowed")
	do(1, "verify policy.yaml milan.json --owner "+signer+at, "policy_unsigned")
	write("signed.json", []byte(strings.Replace(signed, `"debug",`, "", 1)))
	do(1, "verify signed.json milan.json"+at, "policy_unsigned")
	write("wrong.yaml", []byte("version: 1\nteee: {}\n"))
	do(2, "explain wrong.yaml", "did you mean tee?")
	do(2, "verify policy.yaml milan.json --at soon", "--at")
	do(2, "sign policy.yaml", "--identity is missing")
	do(2, "evidence report", "--certificate")
	do(2, "evidence quote --chain tcb_info=vcek", "--collateral tcb_info")
}
