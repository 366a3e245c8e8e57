package hooks_test

import (
	"bufio"
	"net"
	"net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/hook"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/hooks"
)

// relay is a mail server without STARTTLS (RFC 5321).
type relay struct {
	mutex   sync.Mutex
	down    bool
	letters []string // as they were sent
	refused []string // receivers, while it was down
}

// newRelay listens on the address, and returns it as hooks know it.
func newRelay(t *testing.T, address string) (*relay, hooks.Mail) {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { r.serve(connection) })
		}
	})
	t.Cleanup(func() { listener.Close(); serving.Wait() })
	return r, hooks.Mail{Host: address, Port: listener.Addr().(*net.TCPAddr).Port, From: "tandem@example.org", Domains: []string{"example.org"}}
}

func (r *relay) serve(connection net.Conn) {
	defer connection.Close()
	connection.SetDeadline(time.Now().Add(time.Minute))
	lines := bufio.NewScanner(connection)
	say := func(text string) { connection.Write([]byte(text + "\r\n")) }
	say("220 relay")
	for lines.Scan() {
		command, rest, _ := strings.Cut(strings.ToUpper(lines.Text()), " ")
		switch command {
		case "EHLO":
			say("250-relay\r\n250 8BITMIME")
		case "RCPT":
			r.mutex.Lock()
			down := r.down
			if down {
				r.refused = append(r.refused, rest)
			}
			r.mutex.Unlock()
			if down {
				say("451 try again later")
				continue
			}
			say("250 ok")
		case "DATA":
			say("354 go on")
			var letter strings.Builder
			for lines.Scan() && lines.Text() != "." {
				letter.WriteString(lines.Text() + "\n")
			}
			r.mutex.Lock()
			r.letters = append(r.letters, letter.String())
			r.mutex.Unlock()
			say("250 taken")
		case "QUIT":
			say("221 bye")
			return
		default:
			say("250 ok")
		}
	}
}

func (r *relay) set(down bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.down = down
}

func (r *relay) state() (letters, refused []string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return append([]string(nil), r.letters...), append([]string(nil), r.refused...)
}

// People are told by e-mail, also what the mail server did not take at first, and no more
// than one a minute by a hook. A study without a result has no new best.
func TestPeopleAreToldByMail(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.still = time.Now()
	var r *relay
	r, h.mail = newRelay(t, "127.0.0.1")
	r.set(true)
	service, _ := h.serve()
	witness := newReceiver(t) // is told sooner than once a minute
	h.create(service, "witness", witness.URL, true)
	if _, err := service.Create(t.Context(), hook.HookRequest{Hook: definition.Hook{Name: "anna"}, Kind: hook.Email, Address: "anna@example.org", All: true}); err != nil {
		t.Fatal(err)
	}
	h.study("s", "")
	h.trial("s", 0, 0, 1)
	h.trial("s", 1, 1, 0.5)
	until(t, "a refusal that is shown", func() bool {
		list := service.Of(t.Context(), h.view("s"))
		return len(list) == 2 && list[0].Failing != nil && strings.Contains(list[0].Answer, "451") && list[0].To == "anna@example.org"
	})
	if _, refused := r.state(); refused[0] != "TO:<ANNA@EXAMPLE.ORG>" {
		t.Errorf("refused %q", refused)
	}
	until(t, "what the witness is told", func() bool { return len(witness.told()) == 1 })
	until(t, "that it is noted", func() bool { return service.Of(t.Context(), h.view("s"))[1].Told == 1 })
	r.set(false)
	h.later(time.Minute)
	until(t, "a letter", func() bool { letters, _ := r.state(); return len(letters) > 0 && len(witness.told()) == 2 })
	until(t, "that both are noted", func() bool {
		list := service.Of(t.Context(), h.view("s"))
		return list[0].Told == 1 && list[1].Told == 2
	})
	for i := range 3 {
		h.trial("s", 2+i, 1, 0.4-0.1*trial.Float(i))
		h.later(10 * time.Second)
		until(t, "what the witness is told", func() bool { return service.Of(t.Context(), h.view("s"))[1].Told == 3+i })
	}
	if letters, _ := r.state(); len(letters) > 1 {
		t.Errorf("%d letters in a minute", len(letters))
	}
	h.later(time.Minute)
	until(t, "the second letter", func() bool { letters, _ := r.state(); return len(letters) > 1 })
	letters, _ := r.state()
	for i, want := range []string{"Study s: trial 0 leads, loss 1 (rung 0)", "Study s: trial 1 leads, loss 0.5 (rung 1)"} {
		letter, err := mail.ReadMessage(strings.NewReader(letters[i]))
		if err != nil {
			t.Fatal(err)
		}
		if got := letter.Header; got.Get("Subject") != want || got.Get("From") != "<tandem@example.org>" || got.Get("To") != "<anna@example.org>" ||
			!strings.HasPrefix(got.Get("Message-Id"), "<msg_") || got.Get("Auto-Submitted") != "auto-generated" {
			t.Errorf("letter %d:\n%s", i, letters[i])
		}
	}
	if err := service.Delete(t.Context(), "anna"); err != nil {
		t.Fatal(err)
	}
	if _, err := service.Create(t.Context(), hook.HookRequest{Hook: definition.Hook{Name: "ben"}, Kind: hook.Email, Address: "ben@example.org", All: true}); err != nil {
		t.Fatal(err)
	}
	h.later(time.Second)
	h.study("none", "")
	h.done("none")
	until(t, "the end of a study without a result", func() bool { letters, _ := r.state(); return len(letters) > 2 })
	if letters, _ := r.state(); len(letters) != 3 || !strings.Contains(letters[2], "Subject: Study none: completed") {
		t.Errorf("of a study without a result is told:\n%s", strings.Join(letters[2:], "\n"))
	}
}

// Nobody is sent mail whom the operator did not allow, and without STARTTLS only a mail
// server on this machine is told anything.
func TestWhoIsSentMail(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	_, h.mail = newRelay(t, "127.0.0.1")
	service, _ := h.serve()
	for address, want := range map[string]string{
		"anna@elsewhere.org": "in a domain", "anna@sub.example.org": "in a domain", "anna": "an address alone", "Anna <anna@example.org>": "an address alone",
		"anna@example.org, b@elsewhere.org": "an address alone", "anna@example.org\r\nBcc: b@elsewhere.org": "an address alone", "": "an address alone",
	} {
		if _, err := service.Create(t.Context(), hook.HookRequest{Hook: definition.Hook{Name: "x"}, Kind: hook.Email, Address: address}); err == nil || !strings.Contains(err.Error(), "address") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", address, err)
		}
	}
	none, _ := newHouse(t).serve()
	if _, err := none.Create(t.Context(), hook.HookRequest{Hook: definition.Hook{Name: "x"}, Kind: hook.Email, Address: "anna@example.org"}); err == nil || !strings.Contains(err.Error(), "--mail-server") {
		t.Errorf("without a mail server: %v", err)
	}
	outside := ""
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range addresses {
		if network, ok := one.(*net.IPNet); ok && network.IP.To4() != nil && !network.IP.IsLoopback() {
			outside = network.IP.String()
		}
	}
	if outside == "" {
		t.Skip("this machine has no address but its own")
	}
	elsewhere := newHouse(t)
	var r *relay
	r, elsewhere.mail = newRelay(t, outside)
	service, end := elsewhere.serve()
	if _, err := service.Create(t.Context(), hook.HookRequest{Hook: definition.Hook{Name: "anna"}, Kind: hook.Email, Address: "anna@example.org"}); err != nil {
		t.Fatal(err)
	}
	got, err := service.Test(t.Context(), "anna")
	if letters, _ := r.state(); err != nil || got.Told || len(letters) > 0 || !strings.Contains(got.Answer, "the server's log") || strings.Contains(got.Answer, outside) {
		t.Errorf("without STARTTLS: %+v, %v, %d letters", got, err, len(letters))
	}
	end()
	if !strings.Contains(elsewhere.logged.String(), "STARTTLS") {
		t.Errorf("the log does not say why:\n%s", elsewhere.logged.String())
	}
}

func (h *house) later(by time.Duration) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.ahead += by
}
