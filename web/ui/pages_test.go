package ui_test

import (
	"context"
	"math"
	"sync"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// TestPages tries the pages in one browser, each time on a server of its own, but
// for those that only read what the gallery has.
func TestPages(t *testing.T) {
	browser := newBrowser(t)
	played := sync.OnceValue(func() *stage {
		s := newStage(t)
		gallery(s)
		return s
	})
	inGallery := func(try func(*testing.T, *stage, context.Context)) func(*testing.T, *stage, context.Context) {
		return func(t *testing.T, _ *stage, browser context.Context) { try(t, played().with(t), browser) }
	}
	for _, one := range []struct {
		name string
		try  func(*testing.T, *stage, context.Context)
	}{
		{"a link with a token signs in and leaves no token behind", trySignIn},
		{"a wrong token is refused with what to do", tryWrongToken},
		{"a session that ends leads to the sign-in page and back", tryEndedSession},
		{"administrators see and change who may do what", tryAccess},
		{"the leaderboard has the order of the server", tryOrder},
		{"the leaderboard changes without a reload, and the reader's place stays", tryLive},
		{"a script without a sign of life is told, until it reports again", tryStalled},
		{"the leaderboard sorts by any column, and keeps it in the address", trySort},
		{"the leaderboard shows what the filters leave", tryFilter},
		{"the reader chooses the columns, and the browser remembers", tryColumns},
		{"trials are compared side by side, and followed", tryCompare},
		{"studies are found, sorted, and kept in the address", tryStudies},
		{"several studies are acted on at once, after one question", tryBulk},
		{"300 trials with conditions, failures and values that are none", inGallery(tryGallery)},
		{"a study is paused, resumed and stopped, each with a question", tryActions},
		{"a study in which every trial failed is red, and says why", tryFailed},
		{"what has no effect, was retried or never came is said", trySaid},
		{"a study is deleted with a question", tryDelete},
		{"a study is made with a form, which the server corrects", tryNewStudy},
		{"the study file and its form are kept in step", tryStudyFile},
		{"a copy of a study is the same study", tryCopy},
		{"a viewer is told that it cannot make a study", tryNewStudyAsViewer},
		{"a configuration is enqueued, a trial tried again with changes", tryEnqueue},
		{"studies and trials are tagged, and found by their tags", tryAnnotate},
		{"a link opens one study for who has it", tryShare},
		{"a study is given to another user, by whom the server lets do so", tryTransfer},
		{"every action can be reached on a phone and by keys", tryPhone},
		{"a viewer is told that it may not", tryViewer},
		{"a user sees and changes its own studies, an admin all", tryUsers},
		{"artifacts are shown as what they are, side by side", tryArtifacts},
		{"a trial shows its curve, history and log, and follows them", tryTrial},
		{"what is recommended can be copied", tryRecommendation},
		{"what mattered is shown for each rung", inGallery(tryImportance)},
		{"advice has what can be done about it", tryAdvice},
		{"several objectives have a front", tryFront},
		{"repeated trials rank by their means", tryRepeats},
		{"a study says what it expects and how far it trusts that", tryExpected},
		{"a study that waits for others says what it leaves out", tryPriorities},
		{"system configurations are shown with what they saved", trySystem},
		{"a model's deployments are shown for each device", tryDeploy},
		{"what runs taught is shown by type of machine", tryGroundTruth},
		{"studies are compared by what they found and spent", tryCompareStudies},
		{"models are chosen by what they are worth and cost on devices", tryEdge},
		{"what reuse saved is shown by study", tryReuse},
		{"the pool shows demand, its forecast and the knob", tryPool},
		{"the pool shows who runs where, and why", tryPlacement},
		{"confidential studies say what they tell", tryConfidential},
		{"workers show what holds their commands, and what they refuse", tryWorkers},
		{"charts of a study are brushed, chosen and compared", tryCharts},
		{"charts follow the study", tryChartsLive},
		{"charts are read with a finger", tryTouch},
		{"pages can be printed", tryPrint},
		{"a report shows a study without its server", tryReport},
		{"every chart can be taken away as a picture and as data", tryDownloads},
		{"a lost connection is told, and made good", tryConnection},
		{"a page whose study is deleted says so", tryDeleted},
		{"keys do what links do", tryKeys},
		{"colours are the reader's choice", tryColours},
		{"what is empty or does not exist leads on", tryNothing},
		{"names and values with markup stay text", tryMarkup},
	} {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			one.try(t, newStage(t), browser)
		})
	}
}

// smallFile has two rungs, of 1 and 3 epochs, and starts every trial on the first.
const smallFile = `
name: small
description: two rungs
command: [python3, train.py]
objective: {metric: loss, direction: minimize}
space:
  rate:  {type: float, low: 1e-4, high: 1e-1, log: true}
  width: {kind: model, type: int, low: 4, high: 64}
budget: {policy: epochs, epochs: {min: 1, max: 3}, eta: 3}
search: {method: random, seed: 5, brackets: 1}
stop: {trials: 40}
retry: {failures: 0}
`

// story plays the small study to where it has everything: trial 1 was promoted
// and measured at 0.45, 3 and 0 were measured on the first rung at 0.4 and 0.5,
// 2 measured NaN, 4 failed, and 5 is being trained.
func story(h hand) protocol.Lease {
	h.t.Helper()
	for number, loss := range []float64{0.5, 0.2, math.NaN()} {
		h.train(h.next(number, 0), loss)
	}
	h.train(h.next(1, 1), 0.45)
	h.train(h.next(3, 0), 0.4)
	h.finish(h.next(4, 0), protocol.CommandFailed, "exit status 1: out of paper")
	return h.next(5, 0)
}

// next leases from the small study what must come next.
func (h hand) next(number, rung int) protocol.Lease {
	h.t.Helper()
	lease := h.lease("small")
	if lease.Number != number || lease.Rung != rung {
		h.t.Fatalf("leased trial %d on rung %d, want trial %d on rung %d", lease.Number, lease.Rung, number, rung)
	}
	return lease
}
