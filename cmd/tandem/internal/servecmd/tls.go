package servecmd

import (
	"cmp"
	"crypto/tls"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/web/certificate"
)

// tlsOptions are the flags about encryption.
type tlsOptions struct {
	own         bool
	certificate string
	key         string
	// ca is the file of the authority behind the other servers' certificates.
	ca string
	// plain allows plain HTTP on an address that other machines can reach.
	plain bool
}

// tlsFlags are the flags of a server that encrypts.
func tlsFlags(command *cobra.Command, options *tlsOptions) {
	flags := command.Flags()
	flags.BoolVar(&options.own, "tls", false, "answer over TLS 1.3, with a certificate of the server's own (clients take its authority.pem with --ca)")
	flags.StringVar(&options.certificate, "tls-cert", "", "answer over TLS 1.3 with the certificate in this PEM file, which is read again when it changes; needs --tls-key")
	flags.StringVar(&options.key, "tls-key", "", "PEM file with the key of --tls-cert")
	flags.StringVar(&options.ca, "ca", "", "with --database: PEM file with the authority that signed the other servers' certificates (default: whom the machine trusts)")
}

// on reports whether the server encrypts.
func (o tlsOptions) on() bool { return o.own || o.certificate != "" }

// check refuses flags that contradict each other, and to send tokens across a
// network in plain text unless that was asked for.
func (o tlsOptions) check(listen string, shared bool) error {
	switch {
	case o.own && (o.certificate != "" || o.key != ""):
		return term.Misuse("--tls makes a certificate, --tls-cert and --tls-key bring one: give one or the other")
	case o.own && shared:
		return term.Misuse("--tls makes an authority for one server, and those that share a --database have to believe each other: give each a certificate with --tls-cert and --tls-key, and the authority that signed them with --ca")
	case o.ca != "" && !shared:
		return term.Misuse("--ca is about the other servers on a --database: name the database; clients are given --ca themselves")
	case (o.certificate == "") != (o.key == ""):
		return term.Misuse("--tls-cert and --tls-key belong together: give both")
	case !o.on() && !o.plain && !onLoopback(listen):
		return term.Misuse("other machines can reach --listen %s, and tokens would cross the network in plain text: start the server with tandem serve --tls (or --tls-cert and --tls-key), or add --plain-http if nothing but a TLS proxy can reach it", listen)
	}
	return nil
}

// checkListen refuses what is no address to answer on.
func checkListen(listen string) error {
	host, port, err := net.SplitHostPort(listen)
	_, wrong := net.LookupPort("tcp", port)
	if err == nil && wrong == nil {
		return nil
	}
	if _, number := strconv.Atoi(listen); number == nil { // a port alone
		port = listen
		_, wrong = net.LookupPort("tcp", port)
	} else if err != nil {
		host = strings.Trim(listen, "[]")
	}
	if port == "" || wrong != nil {
		port = "7171"
	}
	return term.Misuse("--listen %q is no HOST:PORT with a port from 0 to 65535: write --listen %s", listen, net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port))
}

// onLoopback reports whether only this machine can reach the address. Names are
// not looked up: they may lead elsewhere tomorrow.
func onLoopback(listen string) bool {
	host, _, _ := net.SplitHostPort(listen) // it was checked
	address, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && address.Unmap().IsLoopback()
}

// encrypt opens what the flags say, for a server that is addressed by the hosts.
func (p *Process) encrypt(hosts []string) error {
	options := p.options.tls
	switch {
	case options.own:
		own, err := certificate.OpenOwn(filepath.Join(p.options.Data, "tls"), ownNames(hosts), time.Now)
		if err != nil {
			return err
		}
		const warnBefore = 180 * 24 * time.Hour
		if ends := own.AuthorityExpires(); time.Until(ends) < warnBefore {
			p.options.Logger.Warn("the server's own authority ends soon: stop the server, delete the folder tls in its data folder, and give the new authority.pem to all clients", "ends", ends)
		}
		p.own, p.certificates = own, own
	case options.certificate != "":
		files, err := certificate.OpenFiles(options.certificate, options.key, time.Now, p.options.Logger)
		if err != nil {
			return err
		}
		p.certificates = files
	case options.plain && !onLoopback(p.options.Listen):
		p.options.Logger.Warn("tokens and data cross the network in plain text: nobody but a TLS proxy may reach this address", "listen", p.options.Listen)
	}
	if p.certificates != nil {
		p.listener = tls.NewListener(p.listener, certificate.Config(p.certificates))
	}
	return nil
}

// ownNames are the names that the server's own certificate is for: those it is
// addressed by, and this machine's.
func ownNames(hosts []string) []string {
	names := []string{"localhost", "127.0.0.1", "::1"}
	if host, err := os.Hostname(); err == nil {
		names = append(names, host)
	}
	for _, host := range hosts {
		address, err := netip.ParseAddr(strings.Trim(host, "[]"))
		switch {
		case err != nil:
			names = append(names, host)
		case address.IsUnspecified():
			names = append(names, localAddresses()...)
		default:
			names = append(names, address.WithZone("").String())
		}
	}
	return names
}

// localAddresses are the addresses of this machine as far as they can be told.
func localAddresses() []string {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var list []string
	for _, one := range addresses {
		if prefix, err := netip.ParsePrefix(one.String()); err == nil && !prefix.Addr().IsLinkLocalUnicast() {
			list = append(list, prefix.Addr().String())
		}
	}
	return list
}
