package hooks

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"slices"
	"strings"

	gomail "github.com/wneessen/go-mail"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/hook"
)

// Mail is the server that takes the operator's e-mail.
type Mail struct {
	Host string
	Port int
	// Implicit says that all is encrypted (submissions, RFC 8314). Else the connection
	// turns to that by STARTTLS, which only a server on this machine may lack.
	Implicit       bool
	User, Password string
	// From is the sender.
	From string
	// Domains are those that receivers may be in.
	Domains []string
}

// fault is what is wrong with a receiver; "" is nothing.
func (m Mail) fault(address string) string {
	if m.Host == "" {
		return "cannot be reached: this server sends no e-mail (its operator starts it with tandem serve --mail-server)"
	}
	parsed, err := mail.ParseAddress(address)
	if err != nil || parsed.Address != address || len(address) > 254 {
		return "must be an address alone, such as anna@example.org"
	}
	if domain := address[strings.LastIndexByte(address, '@')+1:]; !slices.ContainsFunc(m.Domains, func(one string) bool { return strings.EqualFold(one, domain) }) {
		return "must be in a domain that the server's operator allowed: " + strings.Join(m.Domains, ", ")
	}
	return ""
}

// send hands the message to the mail server. It has the same Message-ID each time, so that
// receivers can drop repeats.
func (m Mail) send(ctx context.Context, to entry, message hook.Message) error {
	if fault := m.fault(to.Address); fault != "" {
		return problem.New(problem.Forbidden, "%s %s", to.Address, fault)
	}
	letter := gomail.NewMsg()
	if err := letter.From(m.From); err != nil {
		return err
	}
	if err := letter.To(to.Address); err != nil {
		return err
	}
	letter.Subject(message.Data.Text)
	letter.SetMessageIDWithValue(message.ID + "@" + m.From[strings.LastIndexByte(m.From, '@')+1:])
	letter.SetDateWithValue(message.At)
	letter.SetGenHeader("Auto-Submitted", "auto-generated")
	letter.SetBodyString(gomail.TypeTextPlain, fmt.Sprintf("%s\n\nStudy %s (%s), %s.\nHook %s sent this: \"tandem hook delete %s\" ends it.\n",
		message.Data.Text, message.Data.Study, message.Data.ID, message.At.UTC().Format("2006-01-02 15:04 MST"), to.Name, to.Name))
	var connection net.Conn
	defer func() {
		if connection != nil {
			connection.Close() // the library leaves it open where STARTTLS lacks
		}
	}()
	client, err := m.client(func(ctx context.Context, network, address string) (_ net.Conn, err error) {
		if m.Implicit {
			connection, err = (&tls.Dialer{Config: &tls.Config{ServerName: m.Host, MinVersion: tls.VersionTLS12}}).DialContext(ctx, network, address)
		} else {
			connection, err = new(net.Dialer).DialContext(ctx, network, address)
		}
		return connection, err
	})
	if err != nil {
		return err
	}
	return client.DialAndSendWithContext(ctx, letter)
}

// whyNoMail says what the owner of a hook may know: what was said of the message, but
// nothing of where the mail server is.
func whyNoMail(err error) string {
	var refused *gomail.SendError
	var forbidden *problem.Error
	switch {
	case errors.As(err, &refused), errors.As(err, &forbidden):
		return why(err)
	}
	return "the mail server could not be reached, or took no sign-in: its operator sees why in the server's log"
}

func (m Mail) client(dial gomail.DialContextFunc) (*gomail.Client, error) {
	policy := gomail.TLSMandatory
	if ip, err := netip.ParseAddr(m.Host); m.Host == "localhost" || err == nil && ip.IsLoopback() {
		policy = gomail.TLSOpportunistic
	}
	options := []gomail.Option{gomail.WithPort(m.Port), gomail.WithTLSPolicy(policy), gomail.WithTimeout(answerTime), gomail.WithDialContextFunc(dial)}
	if m.Implicit {
		options = append(options, gomail.WithSSL())
	}
	if m.User != "" {
		options = append(options, gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover), gomail.WithUsername(m.User), gomail.WithPassword(m.Password))
	}
	return gomail.NewClient(m.Host, options...)
}
