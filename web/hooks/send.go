package hooks

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/hook"
)

const (
	// answerTime is how long a receiver has.
	answerTime = 10 * time.Second
	// mostAnswer bounds what is read of an answer, which is thrown away.
	mostAnswer = 64 << 10
	// mostWords bounds what is kept of why there was none.
	mostWords = 300
)

// tell tries a message once.
func (s *Service) tell(ctx context.Context, to entry, message hook.Message) hook.HookAnswer {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	body, _ := json.Marshal(message) // numbers, words and times only
	switch to.Kind {
	case hook.Command:
		return s.run(ctx, to, body)
	case hook.Email:
		if err := s.options.Mail.send(ctx, to, message); err != nil {
			s.options.Logger.Warn("send an e-mail", "hook", to.reference(), "error", err)
			return hook.HookAnswer{Answer: whyNoMail(err)}
		}
		return hook.HookAnswer{Told: true, Answer: "the mail server took it"}
	}
	if to.Kind == hook.Slack {
		escaped := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(message.Data.Text)
		body, _ = json.Marshal(map[string]string{"text": escaped})
	}
	answer, err := s.post(ctx, to, message.ID, body)
	if err != nil {
		return hook.HookAnswer{Answer: why(err)}
	}
	return hook.HookAnswer{Told: answer >= 200 && answer < 300, Answer: strings.TrimSpace(strconv.Itoa(answer) + " " + http.StatusText(answer))}
}

// why says why there is no answer, without the URL, which is a secret.
func why(err error) string {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	if refused, ok := errors.AsType[*problem.Error](err); ok {
		return refused.Detail
	}
	text := err.Error()
	return text[:min(len(text), mostWords)]
}

// post sends the body with the headers of Standard Webhooks. Redirects are not followed.
func (s *Service) post(ctx context.Context, to entry, id string, body []byte) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "tandem-hooks")
	if to.Kind == hook.Webhook {
		at := strconv.FormatInt(s.options.Now().Unix(), 10)
		request.Header.Set("webhook-id", id)
		request.Header.Set("webhook-timestamp", at)
		request.Header.Set("webhook-signature", Sign(to.Secret, id, at, body))
	}
	dialer := net.Dialer{Control: func(_, address string, _ syscall.RawConn) error {
		parsed, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return s.mayReach(parsed.Addr(), request.URL.Scheme == "https")
	}}
	client := http.Client{
		Transport:     &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true, MaxResponseHeaderBytes: mostAnswer},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, mostAnswer)
	return response.StatusCode, nil
}

// Sign is the signature of a webhook: an HMAC-SHA256 of "id.timestamp.body" under the key
// in the secret (Standard Webhooks 1.0.0). at is in seconds since 1970.
func Sign(secret, id, at string, body []byte) string {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// notPublic are networks besides those that package netip knows, from which nothing of the
// internet answers: shared and reserved ones (RFC 6890), what carries other addresses in
// its own (NAT64, 6to4, Teredo), and the metadata service of a cloud with a public address.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("168.63.129.16/32"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("fec0::/10"), netip.MustParsePrefix("::/96"),
}

// never says why nothing can be told at the URL, as far as that is known before a name is
// looked up.
func (s *Service) never(to *url.URL) error {
	encrypted, host := to.Scheme == "https", to.Hostname()
	ip, err := netip.ParseAddr(host)
	switch {
	case err == nil:
		return s.mayReach(ip, encrypted)
	case strings.EqualFold(strings.TrimSuffix(host, "."), "localhost"):
		if s.mayReach(netip.IPv6Loopback(), encrypted) == nil {
			return nil
		}
		return s.mayReach(netip.AddrFrom4([4]byte{127, 0, 0, 1}), encrypted)
	case !encrypted && len(s.options.Allowed) == 0:
		return errPlain
	}
	return nil
}

var errPlain = problem.New(problem.Forbidden, "http is only for addresses that the server's operator allowed: use https")

// mayReach decides on the address that a connection is about to be made to, whatever name
// it came from.
func (s *Service) mayReach(ip netip.Addr, encrypted bool) error {
	ip = ip.Unmap().WithZone("")
	for _, network := range s.options.Allowed {
		if network.Contains(ip) {
			return nil
		}
	}
	public := ip.IsGlobalUnicast() && !ip.IsPrivate()
	for _, network := range notPublic {
		public = public && !network.Contains(ip)
	}
	if !public {
		return problem.New(problem.Forbidden, "its address is not a public one, and the server's operator has not allowed it: tandem serve --allow-hook-address NETWORK")
	}
	if !encrypted {
		return errPlain
	}
	return nil
}

// run runs the hook's program with the document as its input, without a shell and without
// the server's environment. What it prints is thrown away.
func (s *Service) run(ctx context.Context, to entry, body []byte) hook.HookAnswer {
	if !s.runs(to.Command[0]) {
		return hook.HookAnswer{Answer: "the server was not started with --allow-hook-program " + to.Command[0]}
	}
	command := exec.CommandContext(ctx, to.Command[0], to.Command[1:]...)
	command.Dir, command.Env, command.Stdin = "/", []string{"PATH=" + os.Getenv("PATH")}, bytes.NewReader(body)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = time.Second
	if err := cmp.Or(command.Run(), ctx.Err()); err != nil {
		return hook.HookAnswer{Answer: err.Error()}
	}
	return hook.HookAnswer{Told: true, Answer: "exit code 0"}
}
