package simulation_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/web/auth"
)

var errReset = errors.New("connection reset by peer")

// network carries requests to whichever server there is. It is slow, and loses
// requests and answers, and delivers requests twice.
type network struct {
	world *world
	// calm is a network that does nothing of that.
	calm bool
}

// client is a REST client behind a network.
func (w *world) client(scope auth.Scope, calm bool) *rest.Client {
	w.t.Helper()
	client, err := rest.New(rest.Options{
		URL: "http://127.0.0.1:7171", Token: w.secrets[scope], HTTPClient: &http.Client{Transport: network{w, calm}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return client
}

// RoundTrip sends the request and waits for its answer, if one comes.
func (n network) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body.Close()
	}
	dice, ctx := n.world.dice, r.Context()
	if n.calm {
		return n.deliver(ctx, r, body)
	}
	if !pass(ctx, dice.upTo(50*time.Millisecond)) {
		return nil, ctx.Err()
	}
	if dice.chance(0.02) {
		n.world.count("lost requests")
		return nil, errReset
	}
	if dice.chance(0.02) {
		n.world.count("duplicates")
		again := r.Clone(context.Background())
		go func() {
			time.Sleep(dice.upTo(20 * time.Second))
			if answer, err := n.deliver(context.Background(), again, body); err == nil {
				answer.Body.Close()
			}
		}()
	}
	answer, err := n.deliver(ctx, r, body)
	if err != nil {
		return nil, err
	}
	if dice.chance(0.02) {
		n.world.count("lost answers")
		answer.Body.Close()
		return nil, errReset
	}
	if !pass(ctx, dice.upTo(50*time.Millisecond)) {
		return nil, ctx.Err()
	}
	return answer, nil
}

// deliver hands the request to the server, whose answers end with it.
func (n network) deliver(ctx context.Context, r *http.Request, body []byte) (*http.Response, error) {
	s := n.world.current()
	if s == nil {
		return nil, errDown
	}
	inside, hangUp := context.WithCancel(s.ctx)
	defer hangUp()
	if !s.awake(inside) {
		return nil, errReset
	}
	at := *r.URL
	at.Scheme, at.Host = "", ""
	request := r.Clone(inside)
	request.URL, request.RequestURI, request.RemoteAddr, request.Host = &at, at.RequestURI(), "127.0.0.1:40000", r.URL.Host
	request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	recorder, answered := httptest.NewRecorder(), make(chan error, 1)
	go func() { answered <- serve(s.handler, recorder, request) }()
	select {
	case err := <-answered:
		if err == nil && s.ctx.Err() != nil {
			err = errReset
		}
		if err != nil {
			return nil, err
		}
		return recorder.Result(), nil
	case <-s.ctx.Done():
		return nil, errReset
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serve runs the handler as net/http does: a panic ends the connection.
func serve(handler http.Handler, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("the connection was cut off: %v", cause)
		}
	}()
	handler.ServeHTTP(w, r)
	return nil
}
