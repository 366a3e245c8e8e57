package evidence_test

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-sev-guest/verify/testdata"

	"github.com/tandem-tune/tandem/workers/confidential/evidence"
	"github.com/tandem-tune/tandem/workers/confidential/evidencetest"
)

// guestWith is a real guest, recorded, that shows the GPUs.
func guestWith(gpus ...evidence.GPU) *evidence.Evidence {
	return &evidence.Evidence{Version: 1, TEE: evidence.SNP, Report: testdata.AttestationBytes, Certificate: testdata.VcekBytes, GPU: gpus}
}

// The report of a real GPU is believed by NVIDIA's real root, whole and by no other.
func TestTheRecordedReportOfARealGPU(t *testing.T) {
	one := evidencetest.RecordedGPU()
	claims, err := guestWith(one).Verify(pinned(t), day)
	if err != nil || len(claims.GPUs) != 1 || claims.GPUs[0].String() != "hopper, driver 550.90.07, VBIOS 96.00.9f.00.01" {
		t.Fatalf("%+v, %v", claims, err)
	}
	// NVIDIA's list for this driver has the same at its numbers.
	for number, want := range map[int]string{7: "80161aac5e7509f0", 28: "0000000000000000", 35: "c0962ed90316ecea"} {
		if got := claims.GPUs[0].Measurements[number]; len(got) != 96 || !strings.HasPrefix(got, want) {
			t.Errorf("measurement %d is %s", number, got)
		}
	}
	if found := claims.GPUs[0]; len(found.Measurements) != 64 || fmt.Sprintf("%x", found.Nonce[:4]) != "931d8dd0" || found.OpenLinks || found.DevTools || !found.Collateral.IsZero() {
		t.Errorf("it says %+v", found)
	}
	for name, at := range map[string]int{"the request": 0, "the nonce": 4, "the answer": 37, "a measurement": 100, "the GPU's nonce": 3570, "the VBIOS": 3603, "the driver": 3660, "the firmware": len(one.Report) - 110, "the signature": len(one.Report) - 1} {
		bad := evidencetest.RecordedGPU()
		bad.Report[at] ^= 1
		if _, err := guestWith(bad).Verify(pinned(t), day); code(err) != "bad_signature" && code(err) != "malformed_evidence" {
			t.Errorf("a bit of %s: %v", name, err)
		}
	}
	for at := 0; at < len(one.Chain); at += 97 {
		bad := evidencetest.RecordedGPU()
		bad.Chain[at] ^= 1
		if _, err := guestWith(bad).Verify(pinned(t), day); err == nil && !bytes.Equal(certificatesOf(bad.Chain), certificatesOf(one.Chain)) {
			t.Errorf("a bit of the chain at %d is not seen", at)
		}
	}
	if _, err := guestWith(one).Verify(pinned(t), day.AddDate(-20, 0, 0)); code(err) != "expired_chain" {
		t.Errorf("twenty years before: %v", err)
	}
	other := pinned(t)
	other.NVIDIA = evidencetest.NewNVIDIA(t, "GH100", day).Root()
	if _, err := guestWith(one).Verify(other, day); code(err) != "untrusted_root" {
		t.Errorf("by another root: %v", err)
	}
	if other.NVIDIA = nil; code(second(guestWith(one).Verify(other, day))) != "untrusted_root" {
		t.Error("without a root it is believed")
	}
}

func second(_ *evidence.Claims, err error) error { return err }

// certificatesOf is what a chain has without what PEM does not mind.
func certificatesOf(chain []byte) []byte { return bytes.Join(bytes.Fields(chain), nil) }

func TestGPUsAreRefusedByTheirFaults(t *testing.T) {
	amd, nvidia, another := evidencetest.NewAMD(t, "Genoa"), evidencetest.NewNVIDIA(t, "GB100", evidencetest.Now), evidencetest.NewNVIDIA(t, "LS10", evidencetest.Now)
	roots := amd.Roots()
	roots.NVIDIA = nvidia.Root()
	card, switched := nvidia.Card(t), another.Card(t)
	for want, change := range map[string]func(*evidence.Evidence){
		"":              func(*evidence.Evidence) {},
		"bad_signature": func(e *evidence.Evidence) { e.GPU[0].Report[60] ^= 1 },
		"bad_signature of another's": func(e *evidence.Evidence) {
			e.GPU[0].Chain = nvidia.Card(t).Shows(t, [32]byte{1}).Chain
		},
		"malformed_evidence cut":      func(e *evidence.Evidence) { e.GPU[0].Report = e.GPU[0].Report[:3000] },
		"malformed_evidence long":     func(e *evidence.Evidence) { e.GPU[0].Report = append(e.GPU[0].Report, 0) },
		"malformed_evidence none":     func(e *evidence.Evidence) { e.GPU[0].Report = nil },
		"malformed_evidence zeros":    func(e *evidence.Evidence) { e.GPU[0].Report = make([]byte, 4117) },
		"malformed_evidence chain":    func(e *evidence.Evidence) { e.GPU[0].Chain = nil },
		"malformed_evidence part":     func(e *evidence.Evidence) { e.GPU[0].Chain = e.GPU[0].Chain[:len(e.GPU[0].Chain)-300] },
		"malformed_evidence many":     func(e *evidence.Evidence) { e.GPU = make([]evidence.GPU, 17) },
		"malformed_evidence firmware": func(e *evidence.Evidence) { other := *card; other.Runs[0] = 1; e.GPU[0] = other.Shows(t, [32]byte{}) },
		"malformed_evidence driver": func(e *evidence.Evidence) {
			other := *card
			other.Driver = "550;"
			e.GPU[0] = other.Shows(t, [32]byte{})
		},
		"untrusted_root": func(e *evidence.Evidence) { e.GPU[0] = switched.Shows(t, [32]byte{}) },
		"untrusted_root order": func(e *evidence.Evidence) {
			parts := bytes.SplitAfter(e.GPU[0].Chain, []byte("END CERTIFICATE-----\n"))
			parts[1], parts[2] = parts[2], parts[1]
			e.GPU[0].Chain = bytes.Join(parts, nil)
		},
		"gpu_not_bound twice": func(e *evidence.Evidence) { e.GPU = append(e.GPU, card.Shows(t, [32]byte{2})) },
		"revoked": func(e *evidence.Evidence) {
			maps.Copy(e.Collateral, nvidia.Collateral(t, evidencetest.Now, true))
		},
		"collateral_stale": func(e *evidence.Evidence) {
			maps.Copy(e.Collateral, nvidia.Collateral(t, evidencetest.Now.AddDate(0, 0, -61), false))
		},
		"malformed_evidence list": func(e *evidence.Evidence) {
			maps.Copy(e.Collateral, another.Collateral(t, evidencetest.Now, false))
		},
	} {
		made := amd.SNP(t, evidencetest.Guest{}, [64]byte{1})
		made.GPU = []evidence.GPU{card.Shows(t, [32]byte{1})}
		change(made)
		if _, err := made.Verify(roots, evidencetest.Now); code(err) != strings.Fields(want + " .")[0] && (want != "" || err != nil) {
			t.Errorf("%q: %v", want, err)
		}
	}
	roots.NVIDIA = another.Root()
	made := amd.SNP(t, evidencetest.Guest{}, [64]byte{})
	if made.GPU = []evidence.GPU{switched.Shows(t, [32]byte{})}; code(second(made.Verify(roots, evidencetest.Now))) != "product_not_allowed" {
		t.Error("a switch passes for a GPU")
	}
	roots.NVIDIA = nvidia.Root()
	secondCard := nvidia.Card(t)
	secondCard.Feature, secondCard.DevTools = 2, true
	made.GPU = []evidence.GPU{card.Shows(t, [32]byte{1}), secondCard.Shows(t, [32]byte{2})}
	maps.Copy(made.Collateral, nvidia.Collateral(t, evidencetest.Now, false))
	claims, err := made.Verify(roots, evidencetest.Now)
	if err != nil || len(claims.GPUs) != 2 || claims.GPUs[0].Arch != "blackwell" || claims.GPUs[1].Nonce[0] != 2 || !claims.GPUs[1].OpenLinks || !claims.GPUs[1].DevTools || claims.GPUs[0].Collateral.IsZero() {
		t.Errorf("two GPUs: %+v, %v", claims, err)
	}
}

// Whatever is changed in what GPUs show, or in their order, has another digest.
func TestTheDigestIsOfAllThatGPUsShow(t *testing.T) {
	one, other := evidence.GPU{Report: []byte("ab"), Chain: []byte("c")}, evidence.GPU{Report: []byte("d"), Chain: []byte("e")}
	all := map[string]bool{}
	for _, list := range [][]evidence.GPU{
		nil, {one}, {other}, {one, other}, {other, one}, {one, one}, {{Report: []byte("a"), Chain: []byte("bc")}}, {{Report: []byte("ab"), Chain: []byte("c"), DevTools: true}},
	} {
		all[string((&evidence.Evidence{GPU: list}).Digest())] = true
	}
	if len(all) != 8 || !all[""] {
		t.Errorf("%d of 8 differ", len(all))
	}
}

// What a stranger says is a GPU's report is refused, unless it is what the real one signed.
func FuzzGPU(f *testing.F) {
	roots, real := pinned(f), evidencetest.RecordedGPU()
	f.Add(real.Report, real.Chain)
	fake := evidencetest.NewNVIDIA(f, "GH100", day).Card(f).Shows(f, [32]byte{})
	f.Add(fake.Report, real.Chain)
	f.Fuzz(func(t *testing.T, report, chain []byte) {
		claims, _, err := evidence.GPU{Report: report, Chain: chain}.Verify(roots, day)
		switch {
		case (err == nil) == (claims == nil) || err != nil && code(err) == err.Error():
			t.Fatalf("%v, %v", claims, err)
		case err == nil && !bytes.Equal(report[:len(report)-96], real.Report[:len(real.Report)-96]):
			t.Fatal("a report is believed that nobody signed")
		}
	})
}
