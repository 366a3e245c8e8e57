package ui_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/ui"
)

// fake answers the REST contract from memory, with the protocol's own types,
// and serves the pages as the server does. It decides nothing: a test moves
// its studies by hand.
type fake struct {
	mutex   sync.Mutex
	token   string // "" lets everybody in
	studies []*fakeStudy
	workers []protocol.Worker
	calls   []string // every change that was asked for
	refuse  string   // if set, changes are refused with this detail
	streams int      // event streams opened so far
	cut     chan struct{}
}

// fakeStudy is one study with everything the pages can ask about it.
type fakeStudy struct {
	view    protocol.StudyView
	trials  []trial.Trial
	reports map[int][]trial.Report
	logs    map[int]string
	events  []protocol.Event
	changed chan struct{}
}

func newFake(studies ...*fakeStudy) *fake {
	return &fake{studies: studies, cut: make(chan struct{})}
}

// log appends an event and wakes the streams. The caller holds the lock.
func (s *fakeStudy) log(event protocol.Event) {
	event.Study, event.Sequence = s.view.ID, int64(len(s.events)+1)
	s.events = append(s.events, event)
	close(s.changed)
	s.changed = make(chan struct{})
}

// move stores the trial in its new state and logs it.
func (s *fakeStudy) move(t trial.Trial, at time.Time) {
	if t.Number == len(s.trials) {
		s.trials = append(s.trials, t)
	} else {
		s.trials[t.Number] = t
	}
	number := t.Number
	s.log(protocol.Event{At: at, Kind: "trial_state", Trial: t.ID, Number: &number, State: string(t.State), Worker: t.Worker, Reason: t.Reason, Data: t})
}

// report takes one epoch of a trial in, as the service does.
func (s *fakeStudy) report(number int, metrics map[string]trial.Float, seconds, joules float64, at time.Time) {
	t := s.trials[number]
	t.LastEpoch++
	t.Epochs++
	t.State, t.Last = trial.Running, metrics
	t.Seconds += trial.Float(seconds)
	t.Energy = t.Energy.Plus(trial.Energy{Joules: trial.Float(joules), Method: energyMethod})
	one := trial.Report{Trial: t.ID, Rung: t.Rung, Epoch: t.LastEpoch, Metrics: metrics, Seconds: trial.Float(seconds),
		Energy: trial.Energy{Joules: trial.Float(joules), Method: energyMethod}, LeaseEpoch: t.LeaseEpoch, Worker: t.Worker, At: at}
	if t.LastEpoch == t.Budget.Epochs {
		value := metrics[s.view.Definition.Objectives[0].Metric]
		t.Results = append(slices.Clone(t.Results), trial.Result{Rung: t.Rung, Budget: t.Budget, Values: []trial.Float{value}})
	}
	s.trials[number] = t
	s.reports[number] = append(s.reports[number], one)
	s.log(protocol.Event{At: at, Kind: "report", Trial: t.ID, Number: &number, State: string(t.State), Worker: t.Worker, Data: one})
}

// checkpoint stores that the trial's newest epoch was saved.
func (s *fakeStudy) checkpoint(number int, at time.Time) {
	t := s.trials[number]
	t.Checkpoint = &trial.Checkpoint{Epoch: t.LastEpoch, Rung: t.Rung, Artifact: strings.Repeat("5e", 32), Bytes: 184_320}
	s.trials[number] = t
	s.log(protocol.Event{At: at, Kind: "checkpoint", Trial: t.ID, Number: &number, State: string(t.State), Worker: t.Worker, Data: t.Checkpoint})
}

// ranked is the leaderboard: highest measured rung, best (highest) value, number.
func (s *fakeStudy) ranked() []protocol.RankedTrial {
	rung := func(t protocol.RankedTrial) int {
		if len(t.Results) == 0 {
			return -1
		}
		return t.Results[len(t.Results)-1].Rung
	}
	var list []protocol.RankedTrial
	for _, t := range s.trials {
		list = append(list, protocol.RankedTrial{Trial: t})
	}
	slices.SortFunc(list, func(a, b protocol.RankedTrial) int {
		x, _ := a.Value(0)
		y, _ := b.Value(0)
		return cmp.Or(cmp.Compare(rung(b), rung(a)), cmp.Compare(y, x), cmp.Compare(a.Number, b.Number))
	})
	for i := range list {
		if rung(list[i]) >= 0 {
			list[i].Rank = i + 1
		}
	}
	return list
}

// refresh computes the study's progress.
func (s *fakeStudy) refresh() {
	p := protocol.Progress{Trials: map[trial.State]int{}, Created: len(s.trials), MaxTrials: s.view.Definition.Stop.Trials,
		ElapsedSeconds: s.view.Progress.ElapsedSeconds, RemainingSeconds: s.view.Progress.RemainingSeconds}
	for _, state := range trial.States() {
		p.Trials[state] = 0
	}
	for _, t := range s.trials {
		p.Trials[t.State]++
		p.Epochs += t.Epochs
		p.DataPasses += float64(t.Epochs) * t.Budget.DataFraction
		p.TrialSeconds += float64(t.Seconds)
		p.Energy = p.Energy.Plus(t.Energy)
		p.Promotions += t.Promotions
		p.Resumes += t.Resumes
	}
	if ranked := s.ranked(); len(ranked) > 0 && ranked[0].Rank == 1 {
		leader, last := ranked[0], ranked[0].Results[len(ranked[0].Results)-1]
		p.Best = &protocol.Best{Trial: leader.ID, Number: leader.Number, Metric: s.view.Definition.Objectives[0].Metric,
			Value: last.Values[0], Rung: last.Rung, Budget: last.Budget, Params: leader.Configuration}
	}
	s.view.Progress = p
}

// handler is the server: pages and API behind the session, as in production.
func (f *fake) handler() http.Handler {
	pages := ui.Handler()
	mux := http.NewServeMux()
	mux.Handle("/", pages)
	mux.HandleFunc("POST /api/v1/session", f.signIn)
	mux.HandleFunc("DELETE /api/v1/session", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "tandem_session", Path: "/", MaxAge: -1})
		w.WriteHeader(http.StatusNoContent)
	})
	mux.HandleFunc("GET /api/v1/studies", f.locked(func(w http.ResponseWriter, r *http.Request) {
		views := []protocol.StudyView{}
		for _, s := range f.studies {
			s.refresh()
			views = append(views, s.view)
		}
		answer(w, map[string]any{"studies": views})
	}))
	mux.HandleFunc("GET /api/v1/workers", f.locked(func(w http.ResponseWriter, r *http.Request) {
		answer(w, map[string]any{"workers": f.workers})
	}))
	study := func(pattern string, serve func(http.ResponseWriter, *http.Request, *fakeStudy)) {
		mux.HandleFunc(pattern, f.locked(func(w http.ResponseWriter, r *http.Request) {
			if s := f.study(r.PathValue("study")); s != nil {
				serve(w, r, s)
				return
			}
			refuse(w, http.StatusNotFound, "not_found", "there is no such study")
		}))
	}
	study("GET /api/v1/studies/{study}", func(w http.ResponseWriter, r *http.Request, s *fakeStudy) {
		s.refresh()
		answer(w, s.view)
	})
	study("GET /api/v1/studies/{study}/trials", servePage)
	study("GET /api/v1/studies/{study}/trials/{number}", serveTrial)
	study("GET /api/v1/studies/{study}/trials/{number}/log", func(w http.ResponseWriter, r *http.Request, s *fakeStudy) {
		number, _ := strconv.Atoi(r.PathValue("number"))
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprint(w, s.logs[number])
	})
	study("GET /api/v1/studies/{study}/recommendation", serveRecommendation)
	study("POST /api/v1/studies/{study}/{action}", f.change)
	mux.HandleFunc("GET /api/v1/studies/{study}/events", f.stream)
	return f.protected(mux)
}

func (f *fake) study(ref string) *fakeStudy {
	for _, s := range f.studies {
		if s.view.ID == ref || s.view.Name == ref {
			return s
		}
	}
	return nil
}

func (f *fake) locked(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		serve(w, r)
	}
}

// protected asks for the session cookie wherever the contract does.
func (f *fake) protected(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		public := path == "/login" || strings.HasPrefix(path, "/assets/") || path == "/api/v1/session"
		cookie, err := r.Cookie("tandem_session")
		switch {
		case public || f.token == "" || err == nil && cookie.Value == "session-of-"+f.token:
			next.ServeHTTP(w, r)
		case strings.HasPrefix(path, "/api/"):
			refuse(w, http.StatusUnauthorized, "unauthorized", "sign in first")
		default:
			http.Redirect(w, r, "/login?next="+path, http.StatusSeeOther)
		}
	})
}

func (f *fake) signIn(w http.ResponseWriter, r *http.Request) {
	var body struct{ Token string }
	if json.NewDecoder(r.Body).Decode(&body) != nil || body.Token != f.token {
		refuse(w, http.StatusUnauthorized, "unauthorized", "the token is not valid")
		return
	}
	http.SetCookie(w, &http.Cookie{Name: "tandem_session", Value: "session-of-" + f.token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	w.WriteHeader(http.StatusNoContent)
}

func (f *fake) change(w http.ResponseWriter, r *http.Request, s *fakeStudy) {
	action := r.PathValue("action")
	if r.Header.Get("Idempotency-Key") == "" {
		refuse(w, http.StatusUnprocessableEntity, "invalid", "the Idempotency-Key is missing")
		return
	}
	f.calls = append(f.calls, action+" "+s.view.Name)
	if f.refuse != "" {
		refuse(w, http.StatusForbidden, "forbidden", f.refuse)
		return
	}
	s.view.Status = map[string]protocol.StudyStatus{"pause": protocol.StudyPaused, "resume": protocol.StudyRunning, "stop": protocol.StudyStopped}[action]
	s.log(protocol.Event{At: time.Now(), Kind: "study_status", State: string(s.view.Status)})
	s.refresh()
	answer(w, s.view)
}

func servePage(w http.ResponseWriter, r *http.Request, s *fakeStudy) {
	list := s.ranked()
	if r.URL.Query().Get("sort") == "number" {
		slices.SortFunc(list, func(a, b protocol.RankedTrial) int { return cmp.Compare(a.Number, b.Number) })
	}
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	offset, _ := strconv.Atoi(r.URL.Query().Get("offset"))
	first := min(offset, len(list))
	answer(w, protocol.TrialPage{Trials: list[first:min(first+limit, len(list))], Total: len(list), Sequence: int64(len(s.events))})
}

func serveTrial(w http.ResponseWriter, r *http.Request, s *fakeStudy) {
	number, err := strconv.Atoi(r.PathValue("number"))
	for _, t := range s.ranked() {
		if err != nil || t.Number != number {
			continue
		}
		detail := protocol.TrialDetail{Trial: t, Reports: s.reports[number]}
		for _, event := range s.events {
			if event.Trial == t.ID {
				detail.Events = append(detail.Events, event)
			}
		}
		answer(w, detail)
		return
	}
	refuse(w, http.StatusNotFound, "not_found", "there is no such trial")
}

func serveRecommendation(w http.ResponseWriter, r *http.Request, s *fakeStudy) {
	s.refresh()
	reply := protocol.Recommendation{Study: s.view.Name, Status: s.view.Status, Best: s.view.Progress.Best, System: s.view.Definition.System, Notes: []string{}}
	if reply.Best != nil {
		winner := s.trials[reply.Best.Number]
		reply.Metrics, reply.Checkpoint, reply.Seconds, reply.Energy = winner.Last, winner.Checkpoint, winner.Seconds, winner.Energy
		reply.FullBudget = reply.Best.Rung == len(s.view.Rungs)-1
	}
	if s.view.Status == protocol.StudyRunning {
		reply.Notes = append(reply.Notes, "the study is still running: a better trial may come")
	}
	answer(w, reply)
}

// stream sends events as they come, until the reader leaves or the test cuts
// the line.
func (f *fake) stream(w http.ResponseWriter, r *http.Request) {
	f.mutex.Lock()
	s, cut := f.study(r.PathValue("study")), f.cut
	f.streams++
	f.mutex.Unlock()
	after, _ := strconv.Atoi(cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after")))
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, "retry: 100\n\n")
	for {
		f.mutex.Lock()
		pending, changed := slices.Clone(s.events[min(after, len(s.events)):]), s.changed
		f.mutex.Unlock()
		for _, event := range pending {
			data, _ := json.Marshal(event)
			fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", event.Sequence, event.Kind, data)
			after = int(event.Sequence)
		}
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-cut:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(body); err != nil {
		panic(err)
	}
}

func refuse(w http.ResponseWriter, status int, code, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"title": http.StatusText(status), "status": status, "detail": detail, "code": code})
}
