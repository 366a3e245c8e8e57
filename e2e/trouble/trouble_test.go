package trouble_test

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/e2e/trouble"
)

// post sends one request and says what came back: the answer's text, or "".
func post(client *http.Client, url, text string) string {
	response, err := client.Post(url, "text/plain", strings.NewReader(text))
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return ""
	}
	return string(answer)
}

// book counts what arrives at a server.
type book struct {
	mutex   sync.Mutex
	arrived map[string]int
	order   []string
}

func (b *book) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.arrived[string(text)]++
	b.order = append(b.order, string(text))
	fmt.Fprintf(w, "%-100s", "got "+string(text)) // longer than what is left of a cut answer
}

// within runs a server and a troubled client in simulated time.
func within(t *testing.T, seed uint64, odds trouble.Odds, test func(client *http.Client, transport *trouble.Transport, b *book)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &book{arrived: map[string]int{}}
		var network trouble.Network
		server := &http.Server{Handler: b}
		listener := network.Listen("server:80")
		go server.Serve(listener)
		base := network.Transport()
		transport := trouble.NewTransport(base, seed, odds)
		test(&http.Client{Transport: transport}, transport, b)
		transport.Close()
		base.CloseIdleConnections()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
	})
}

func TestEachKindOfTroubleIsWhatItSays(t *testing.T) {
	tests := map[trouble.Kind]struct {
		odds     trouble.Odds
		arrived  int // how often the request did
		answered bool
		later    bool // that the answer came
	}{
		trouble.Undisturbed: {trouble.Odds{}, 1, true, false},
		trouble.Refused:     {trouble.Odds{Refused: 1}, 0, false, false},
		trouble.Lost:        {trouble.Odds{Lost: 1}, 1, false, false},
		trouble.Cut:         {trouble.Odds{Cut: 1}, 1, false, false},
		trouble.Twice:       {trouble.Odds{Twice: 1}, 2, true, false},
		trouble.Replayed:    {trouble.Odds{Replayed: 1, Longest: time.Hour}, 2, true, false},
		trouble.Delayed:     {trouble.Odds{Delayed: 1, Longest: time.Hour}, 1, true, true},
	}
	for kind, test := range tests {
		t.Run(string(kind), func(t *testing.T) {
			within(t, 1, test.odds, func(client *http.Client, transport *trouble.Transport, b *book) {
				began := time.Now()
				answer := post(client, "http://server:80/x", "one")
				if answered := strings.HasPrefix(answer, "got one"); answered != test.answered {
					t.Errorf("the answer was %q", answer)
				}
				if later := time.Since(began) > 0; later != test.later {
					t.Errorf("it took %v", time.Since(began))
				}
				transport.Wait()
				if b.arrived["one"] != test.arrived {
					t.Errorf("it arrived %d times", b.arrived["one"])
				}
				if counts := transport.Counts(); counts[kind] != 1 || len(counts) != 1 {
					t.Errorf("counted %v", counts)
				}
				transport.Calm()
				if answer := post(client, "http://server:80/x", "two"); !strings.HasPrefix(answer, "got two") || b.arrived["two"] != 1 {
					t.Errorf("when it was calm the answer was %q", answer)
				}
			})
		})
	}
}

func TestTroubleDependsOnTheSeedAlone(t *testing.T) {
	fates := func(seed uint64, clients int) (answered map[string]bool) {
		answered = map[string]bool{}
		within(t, seed, trouble.Odds{Refused: 0.3, Lost: 0.3}, func(client *http.Client, _ *trouble.Transport, _ *book) {
			var mutex sync.Mutex
			var group sync.WaitGroup
			for i := range clients { // whose requests come in any order
				group.Go(func() {
					for n := range 20 {
						got := post(client, fmt.Sprintf("http://server:80/%d", i), "text") != ""
						mutex.Lock()
						answered[fmt.Sprint(i, ".", n)] = got
						mutex.Unlock()
					}
				})
			}
			group.Wait()
		})
		return answered
	}
	first, again, other := fates(1, 5), fates(1, 5), fates(2, 5)
	if !maps.Equal(first, again) {
		t.Errorf("the same seed made different trouble:\n%v\n%v", first, again)
	}
	if maps.Equal(first, other) {
		t.Error("another seed made the same trouble")
	}
}

func TestDelaysChangeTheOrder(t *testing.T) {
	within(t, 3, trouble.Odds{Delayed: 1, Longest: time.Minute}, func(client *http.Client, _ *trouble.Transport, b *book) {
		var group sync.WaitGroup
		for i := range 20 {
			group.Go(func() { post(client, fmt.Sprintf("http://server:80/%d", i), fmt.Sprintf("%02d", i)) })
			time.Sleep(time.Second)
		}
		group.Wait()
		sorted := true
		for i := 1; i < len(b.order); i++ {
			sorted = sorted && b.order[i-1] < b.order[i]
		}
		if sorted || len(b.order) != 20 {
			t.Errorf("arrived in the order %v", b.order)
		}
	})
}

// proxied is a real server behind a proxy, and a client that opens a connection
// for each request.
func proxied(t *testing.T) (*trouble.Proxy, *http.Client, *book) {
	t.Helper()
	b := &book{arrived: map[string]int{}}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	proxy, err := trouble.NewProxy(strings.TrimPrefix(server.URL, "http://"), 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	return proxy, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}, b
}

func TestFineWeatherChangesNothing(t *testing.T) {
	proxy, client, b := proxied(t)
	for _, weather := range []trouble.Weather{{}, {Piece: 7}, {Latency: time.Millisecond}, {BytesPerSecond: 100_000}} {
		proxy.Set(weather)
		text := strings.Repeat("x", 1000) + fmt.Sprint(weather)
		if answer := post(client, "http://"+proxy.Address(), text); !strings.HasPrefix(answer, "got "+text) || b.arrived[text] != 1 {
			t.Errorf("in the weather %+v it arrived %d times, and was answered %.20q", weather, b.arrived[text], answer)
		}
	}
}

func TestConnectionsAreResetAndRefused(t *testing.T) {
	proxy, client, _ := proxied(t)
	proxy.Set(trouble.Weather{ResetAfter: 1}) // with the first byte
	if answer := post(client, "http://"+proxy.Address(), "one"); answer != "" || proxy.Resets() != 1 {
		t.Errorf("%q came through %d resets", answer, proxy.Resets())
	}
	proxy.Set(trouble.Weather{Refuse: true})
	if answer := post(client, "http://"+proxy.Address(), "two"); answer != "" {
		t.Errorf("%q came through a closed door", answer)
	}
	proxy.Set(trouble.Weather{})
	if answer := post(client, "http://"+proxy.Address(), "three"); answer == "" {
		t.Error("nothing came through when the weather was fine again")
	}
}

func TestPartitionsOfOneDirection(t *testing.T) {
	for name, test := range map[string]struct {
		weather trouble.Weather
		arrives bool
	}{"to the server": {trouble.Weather{HoldUp: true}, false}, "from the server": {trouble.Weather{HoldDown: true}, true}} {
		t.Run(name, func(t *testing.T) {
			proxy, client, b := proxied(t)
			proxy.Set(test.weather)
			answer := make(chan string, 1)
			go func() { answer <- post(client, "http://"+proxy.Address(), "one") }()
			if test.arrives {
				for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(time.Millisecond) {
					b.mutex.Lock()
					arrived := b.arrived["one"]
					b.mutex.Unlock()
					if arrived == 1 {
						break
					}
					if time.Now().After(deadline) {
						t.Fatal("the request did not arrive")
					}
				}
			}
			select {
			case got := <-answer:
				t.Fatalf("%q came through a partition", got)
			case <-time.After(50 * time.Millisecond):
			}
			b.mutex.Lock()
			if arrived := b.arrived["one"] == 1; arrived != test.arrives {
				t.Errorf("it arrived: %v", arrived)
			}
			b.mutex.Unlock()
			proxy.Set(trouble.Weather{})
			if got := <-answer; !strings.HasPrefix(got, "got one") {
				t.Errorf("when it was over the answer was %q", got)
			}
		})
	}
}

func TestNobodyListens(t *testing.T) {
	var network trouble.Network
	if connection, err := network.Dial(t.Context(), "tcp", "nobody:1"); err == nil {
		t.Errorf("somebody is there: %v", connection)
	}
	listener := network.Listen("somebody:1")
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := network.Dial(t.Context(), "tcp", "somebody:1"); err == nil {
		t.Error("somebody is still there")
	}
	if _, err := listener.Accept(); err != net.ErrClosed {
		t.Errorf("a closed listener said %v", err)
	}
}
