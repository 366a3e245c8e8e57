package study_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/similarity/groundtruth"
	"github.com/tandem-tune/tandem/store/memory"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/registry"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
)

// lesson is a record of so many seconds behind a moment long past.
func lesson(id, machine string, seconds int) similarity.Record {
	return similarity.Record{
		ID: id, Machine: machine, Updated: time.Unix(900_000_000, 5).UTC().Add(time.Duration(seconds) * time.Second),
		Cells: []similarity.Cell{{
			Configuration: system.Configuration{system.Cores: space.Int(2), system.CPUGovernor: space.String("performance"), system.MemoryGiB: space.Float(0.5)},
			Neighbours:    1, Epochs: max(0, seconds), LogSeconds: 0.5, LogJoules: -3, Variance: 0.25, Profiles: 4, Features: map[string]float64{"tree.cpu_user": -2.5},
		}},
	}
}

func truth(records ...similarity.Record) protocol.GroundTruth {
	return protocol.GroundTruth{Version: protocol.GroundTruthVersion, Records: records}
}

// known is what the service has of the type of machine, as text.
func (w *world) known(machine string) string {
	w.t.Helper()
	exported, err := w.service.GroundTruth(w.ctx, machine)
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := json.Marshal(exported)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

// teach imports records and says how many were taken and skipped.
func (w *world) teach(want string, records ...similarity.Record) {
	w.t.Helper()
	reply, err := w.service.ImportGroundTruth(w.ctx, truth(records...))
	if got := fmt.Sprintf("%d imported, %d skipped", reply.Imported, reply.Skipped); err != nil || got != want {
		w.t.Errorf("%s, want %s: %v", got, want, err)
	}
}

func TestGroundTruthMovesBetweenServers(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.teach("3 imported, 0 skipped", lesson("record-1", "x86, 2 cores", 1), lesson("record-2", "x86, 2 cores", 2), lesson("record-3", "arm, 4 cores", 3))
		other := newWorld(t, 9)
		exported, err := w.service.GroundTruth(t.Context(), "")
		if err != nil || len(exported.Records) != 3 {
			t.Fatalf("%d records of 3: %v", len(exported.Records), err)
		}
		for round, want := range []string{"3 imported, 0 skipped", "0 imported, 3 skipped"} {
			other.teach(want, exported.Records...)
			if got, want := other.known(""), w.known(""); got != want {
				t.Errorf("imported %d times, the ground truth is\n%s\nwant\n%s", round+1, got, want)
			}
		}
		if part := w.known("arm, 4 cores"); strings.Contains(part, "record-1") || !strings.Contains(part, "record-3") {
			t.Errorf("of one type: %s", part)
		}
		machines, err := other.service.GroundTruthMachines(t.Context())
		want := []protocol.GroundTruthMachine{
			{Machine: "arm, 4 cores", Records: 1, Configurations: 1, Epochs: 3, Oldest: exported.Records[2].Updated, Newest: exported.Records[2].Updated},
			{Machine: "x86, 2 cores", Records: 2, Configurations: 1, Epochs: 3, Oldest: exported.Records[0].Updated, Newest: exported.Records[1].Updated},
		}
		if err != nil || fmt.Sprint(machines) != fmt.Sprint(want) {
			t.Errorf("the summary is\n%v\nwant\n%v: %v", machines, want, err)
		}
	})(t)
}

func TestImportKeepsTheNewerVersion(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.teach("2 imported, 0 skipped", lesson("record-1", "x86", 5), lesson("record-2", "x86", 5))
		w.teach("1 imported, 1 skipped", lesson("record-1", "x86", 4), lesson("record-2", "x86", 6))
		w.start() // also after a restart
		text := w.known("x86")
		for id, epochs := range map[string]int{"record-1": 5, "record-2": 6} {
			if !strings.Contains(text, fmt.Sprintf(`"id":%q`, id)) || !strings.Contains(text, fmt.Sprintf(`"epochs":%d`, epochs)) {
				t.Errorf("%s with %d epochs is not in %s", id, epochs, text)
			}
		}
	})(t)
}

func TestImportHasRoomForTheNewest(t *testing.T) {
	in(func(t *testing.T, w *world) {
		var many []similarity.Record
		for i := range groundtruth.MaxRecords {
			many = append(many, lesson(fmt.Sprintf("record-%04d", i), "x86", i))
		}
		w.teach("2000 imported, 0 skipped", many...)
		w.teach("3 imported, 2 skipped", lesson("older-than-all", "x86", -1), lesson("record-0007", "x86", 7),
			lesson("among-them", "x86", 1000), lesson("newest-of-all", "x86", 3000), lesson("elsewhere", "arm", -1))
		text := w.known("x86")
		for id, stays := range map[string]bool{"older-than-all": false, "record-0000": false, "record-0001": false, "record-0002": true, "among-them": true, "newest-of-all": true} {
			if strings.Contains(text, `"`+id+`"`) != stays {
				t.Errorf("%s stays: %v, want %v", id, !stays, stays)
			}
		}
	})(t)
}

func TestFaultyGroundTruthIsRefusedAsAWhole(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*protocol.GroundTruth)
		at    string
	}{
		"another version":        {func(g *protocol.GroundTruth) { g.Version = 2 }, "version"},
		"no version":             {func(g *protocol.GroundTruth) { g.Version = 0 }, "version"},
		"too many":               {func(g *protocol.GroundTruth) { g.Records = make([]similarity.Record, groundtruth.MaxRecords+1) }, "records"},
		"an id twice":            {func(g *protocol.GroundTruth) { g.Records[1].ID = g.Records[0].ID }, "records[1].id"},
		"a short id":             {func(g *protocol.GroundTruth) { g.Records[1].ID = "r1" }, "records[1].id"},
		"an id that is a path":   {func(g *protocol.GroundTruth) { g.Records[0].ID = "../../record" }, "records[0].id"},
		"no machine":             {func(g *protocol.GroundTruth) { g.Records[0].Machine = "" }, "records[0].machine"},
		"a machine of two lines": {func(g *protocol.GroundTruth) { g.Records[0].Machine = "x86\n2 cores" }, "records[0].machine"},
		"a long machine":         {func(g *protocol.GroundTruth) { g.Records[0].Machine = strings.Repeat("x", 1025) }, "records[0].machine"},
		"no time":                {func(g *protocol.GroundTruth) { g.Records[1].Updated = time.Time{} }, "records[1].updated"},
		"the future":             {func(g *protocol.GroundTruth) { g.Records[1].Updated = time.Now().Add(25 * time.Hour) }, "records[1].updated"},
		"a cell twice":           {func(g *protocol.GroundTruth) { g.Records[1].Cells = append(g.Records[1].Cells, g.Records[1].Cells[0]) }, "records[1].cells[1]"},
		"too many cells":         {func(g *protocol.GroundTruth) { g.Records[1].Cells = make([]similarity.Cell, 257) }, "records[1].cells"},
		"an unknown knob":        {func(g *protocol.GroundTruth) { g.Records[1].Cells[0].Configuration["luck"] = space.Int(1) }, "records[1].cells[0].configuration.luck"},
		"half a core":            {func(g *protocol.GroundTruth) { g.Records[1].Cells[0].Configuration["cores"] = space.Float(1.5) }, "records[1].cells[0].configuration.cores"},
		"no core":                {func(g *protocol.GroundTruth) { g.Records[1].Cells[0].Configuration["cores"] = space.Int(0) }, "records[1].cells[0].configuration.cores"},
		"a word for a number":    {func(g *protocol.GroundTruth) { g.Records[1].Cells[0].Configuration["memory_gib"] = space.String("1") }, "records[1].cells[0].configuration.memory_gib"},
		"endless memory": {func(g *protocol.GroundTruth) {
			g.Records[1].Cells[0].Configuration["memory_gib"] = space.Float(math.Inf(1))
		}, "records[1].cells[0].configuration.memory_gib"},
		"a number for a word":     {func(g *protocol.GroundTruth) { g.Records[1].Cells[0].Configuration["precision"] = space.Int(16) }, "records[1].cells[0].configuration.precision"},
		"two words":               {func(g *protocol.GroundTruth) { g.Records[1].Cells[0].Configuration["precision"] = space.String("a b") }, "records[1].cells[0].configuration.precision"},
		"negative neighbours":     {func(g *protocol.GroundTruth) { g.Records[1].Cells[0].Neighbours = -1 }, "records[1].cells[0].neighbours"},
		"too many epochs":         {func(g *protocol.GroundTruth) { g.Records[1].Cells[0].Epochs = 2_000_000_000 }, "records[1].cells[0].epochs"},
		"negative profiles":       {func(g *protocol.GroundTruth) { g.Records[1].Cells[0].Profiles = -1 }, "records[1].cells[0].profiles"},
		"endless seconds":         {func(g *protocol.GroundTruth) { g.Records[1].Cells[0].LogSeconds = math.Inf(1) }, "records[1].cells[0].log_seconds"},
		"joules that are none":    {func(g *protocol.GroundTruth) { g.Records[1].Cells[0].LogJoules = math.NaN() }, "records[1].cells[0].log_joules"},
		"a negative variance":     {func(g *protocol.GroundTruth) { g.Records[1].Cells[0].Variance = -0.1 }, "records[1].cells[0].variance"},
		"a feature that is none":  {func(g *protocol.GroundTruth) { g.Records[1].Cells[0].Features["x"] = math.NaN() }, "records[1].cells[0].features.x"},
		"a feature without name":  {func(g *protocol.GroundTruth) { g.Records[1].Cells[0].Features[""] = 1 }, "records[1].cells[0].features"},
		"a feature's name in two": {func(g *protocol.GroundTruth) { g.Records[1].Cells[0].Features["a\nb"] = 1 }, "records[1].cells[0].features"},
		"too many features": {func(g *protocol.GroundTruth) {
			for i := range 256 {
				g.Records[1].Cells[0].Features[fmt.Sprint(i)] = 1
			}
		}, "records[1].cells[0].features"},
	} {
		t.Run(name, in(func(t *testing.T, w *world) {
			sent := truth(lesson("record-1", "x86", 1), lesson("record-2", "x86", 2))
			c.spoil(&sent)
			_, err := w.service.ImportGroundTruth(w.ctx, sent)
			var told *problem.Error
			if !errors.As(err, &told) || told.Code != problem.Invalid || len(told.Fields) != 1 || told.Fields[0].Path != c.at {
				t.Errorf("want one fault at %s: %+v", c.at, err)
			}
			if kept := w.known(""); strings.Contains(kept, "record") && strings.Contains(kept, "x86") {
				t.Errorf("something was kept: %s", kept)
			}
		}))
	}
}

func TestForgottenGroundTruthIsGone(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.teach("3 imported, 0 skipped", lesson("record-1", "x86", 1), lesson("record-2", "x86", 2), lesson("record-3", "arm", 3))
		for _, c := range []struct {
			machine   string
			forgotten int
			left      string
		}{{"riscv", 0, "record-1 record-2 record-3"}, {"x86", 2, "record-3"}, {"x86", 0, "record-3"}, {"", 1, ""}} {
			reply, err := w.service.ForgetGroundTruth(w.ctx, c.machine)
			if err != nil || reply.Forgotten != c.forgotten {
				t.Errorf("%q: %d forgotten, want %d: %v", c.machine, reply.Forgotten, c.forgotten, err)
			}
			text := w.known("")
			for _, id := range []string{"record-1", "record-2", "record-3"} {
				if strings.Contains(text, id) != strings.Contains(c.left, id) {
					t.Errorf("without %q there is %s, want %s", c.machine, text, c.left)
				}
			}
		}
	})(t)
}

// TestRepeatedImportHasItsFirstAnswer sends one import twice under a key, also
// when both are under way at once.
func TestRepeatedImportHasItsFirstAnswer(t *testing.T) {
	in(func(t *testing.T, w *world) {
		ctx := registry.WithIdempotency(w.ctx, "key", "import")
		for range 2 { // the second one finds the receipt's key taken
			reply, err := w.service.ImportGroundTruth(ctx, truth(lesson("record-1", "x86", 1)))
			if err != nil || reply.Imported != 1 || reply.Skipped != 0 {
				t.Errorf("%+v, %v", reply, err)
			}
		}
		answer, found, err := w.service.Receipt(w.ctx, "key", "import")
		if err != nil || !found || string(answer) != `{"imported":1,"skipped":0}` {
			t.Errorf("%s, %v, %v", answer, found, err)
		}
		if _, err := w.service.ForgetGroundTruth(registry.WithIdempotency(w.ctx, "key", "forget"), ""); !problem.Is(err, problem.KeyReused) {
			t.Errorf("the key for another request: %v", err)
		}
		if !strings.Contains(w.known(""), "record-1") {
			t.Error("a refused request has forgotten everything")
		}
	})(t)
}

// exported is what a server knows after it has trained a study whose trials are
// better off with one thread.
func exported(t *testing.T) protocol.GroundTruth {
	t.Helper()
	w := newWorld(t, 5)
	b := w.box(true)
	tuned(w, "elsewhere")
	b.train("elsewhere", slowWithTwo)
	known, err := w.service.GroundTruth(w.ctx, "")
	if err != nil || len(known.Records) < 3 {
		t.Fatalf("%d records: %v", len(known.Records), err)
	}
	return known
}

// startsWith leases a trial of a new study and wants the phase and the threads
// that it begins with.
func (b *box) startsWith(name string, phase trial.Phase, threads int) {
	b.w.t.Helper()
	tuned(b.w, name)
	reply, err := b.w.service.Lease(b.w.ctx, protocol.LeaseRequest{Worker: b.id, Study: name})
	if err != nil || reply.Lease == nil {
		b.w.t.Fatalf("%s: nothing to lease: %v", name, err)
	}
	setting := b.w.trial(reply.Lease.Trial).Setting
	if setting == nil || setting.Phase != phase || threadsOf(reply.Lease.System, 0) != threads {
		b.w.t.Errorf("%s: a trial starts with %v as %+v, want %d threads, %s", name, reply.Lease.System, setting, threads, phase)
	}
	if _, err := b.w.finish(reply.Lease, protocol.Interrupted); err != nil {
		b.w.t.Fatal(err)
	}
}

func TestWhatIsImportedAndForgottenCountsAtOnce(t *testing.T) {
	in(func(t *testing.T, w *world) {
		known := exported(t)
		b := w.box(true)
		b.startsWith("before", trial.Default, 2)
		w.teach(fmt.Sprintf("%d imported, 0 skipped", len(known.Records)), known.Records...)
		b.startsWith("with", trial.Script, 1)
		if _, err := w.service.ForgetGroundTruth(w.ctx, known.Records[0].Machine); err != nil {
			t.Fatal(err)
		}
		b.startsWith("without", trial.Default, 2)
		w.teach(fmt.Sprintf("%d imported, 0 skipped", len(known.Records)), known.Records...)
		b.startsWith("again", trial.Script, 1)
		if _, err := w.service.ForgetGroundTruth(w.ctx, ""); err != nil {
			t.Fatal(err)
		}
		b.startsWith("never", trial.Default, 2)
	})(t)
}

// meddled is a store in which something happens behind a read of one type's records.
type meddled struct {
	study.Store
	meddle func()
}

func (m *meddled) Records(ctx context.Context, machine string) ([]similarity.Record, error) {
	records, err := m.Store.Records(ctx, machine)
	if meddle := m.meddle; machine != "" && meddle != nil {
		m.meddle = nil
		meddle()
	}
	return records, err
}

func TestWhatIsImportedWhileTheRestIsLoadedIsNotMissed(t *testing.T) {
	in(func(t *testing.T, w *world) {
		known := exported(t)
		store := &meddled{Store: w.store}
		w.store = store
		w.start()
		store.meddle = func() { w.teach(fmt.Sprintf("%d imported, 0 skipped", len(known.Records)), known.Records...) }
		w.box(true).startsWith("example", trial.Script, 1)
		if store.meddle != nil {
			t.Error("nothing was loaded")
		}
	})(t)
}

// The order in which exports come in makes no difference.
func TestImportsCommute(t *testing.T) {
	t.Parallel()
	draw := rapid.Custom(func(r *rapid.T) []similarity.Record {
		var records []similarity.Record
		for _, id := range []string{"record-1", "record-2", "record-3"} {
			if rapid.Bool().Draw(r, id) {
				records = append(records, lesson(id, "x86", rapid.IntRange(0, 3).Draw(r, "updated")))
			}
		}
		return records
	})
	rapid.Check(t, func(r *rapid.T) {
		first, second := draw.Draw(r, "first"), draw.Draw(r, "second")
		var kept [2]string
		for i, order := range [][][]similarity.Record{{first, second}, {second, first, second}} {
			store := memory.New()
			service := study.New(store, store, study.Options{Now: time.Now, Random: func() uint64 { return 4 }})
			taken := 0
			for _, records := range order {
				reply, err := service.ImportGroundTruth(t.Context(), truth(records...))
				if err != nil || reply.Imported+reply.Skipped != len(records) {
					r.Fatalf("%+v of %d: %v", reply, len(records), err)
				}
				taken += reply.Imported
			}
			exported, err := service.GroundTruth(t.Context(), "")
			if err != nil || taken < len(exported.Records) {
				r.Fatalf("%d taken of %d: %v", taken, len(exported.Records), err)
			}
			text, err := json.Marshal(exported)
			if err != nil {
				r.Fatal(err)
			}
			kept[i] = string(text)
		}
		if kept[0] != kept[1] {
			r.Fatalf("%s\nand %s", kept[0], kept[1])
		}
	})
}
