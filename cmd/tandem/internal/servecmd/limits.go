package servecmd

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/filesystem"
	"github.com/tandem-tune/tandem/web/limit"
	"github.com/tandem-tune/tandem/web/monitoring"
)

const (
	// defaultConnections is room for 5,000 workers with three connections each.
	defaultConnections = 16384
	// reservedFiles are for what is no connection: the database, artifacts that
	// are uploaded or read, logs.
	reservedFiles = 256
	// busyAnswer is what a connection that is one too many is told.
	busyAnswer = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nRetry-After: 5\r\nConnection: close\r\n\r\n" +
		`{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"too many connections: try again later","code":"unavailable"}` + "\n"
)

// limitFlags are the flags about what clients may take, and who may watch.
func limitFlags(command *cobra.Command, options *Options) {
	flags := command.Flags()
	flags.IntVar(&options.maxConnections, "max-connections", defaultConnections, "open connections; further ones are answered 503 (over TLS: closed) at once")
	flags.Float64Var(&options.limits.Requests, "requests-per-second", 10_000, "requests that one token may make a second; one address may make twice as many; 0: no bound")
	flags.BoolVar(&options.openMetrics, "open-metrics", false, "let programs on this machine read /metrics without a token")
}

// proxies are the networks that --trusted-proxy names. None may be everybody's: then
// each client could say that it is another.
func (o Options) proxies() ([]netip.Prefix, error) {
	var list []netip.Prefix
	for _, text := range o.trustedProxies {
		network, err := netip.ParsePrefix(text)
		if address, failed := netip.ParseAddr(text); failed == nil {
			address = address.Unmap().WithZone("")
			network, err = netip.PrefixFrom(address, address.BitLen()), nil
		}
		if err != nil || network.Bits() == 0 || network.Addr().Is4In6() {
			return nil, term.Misuse("--trusted-proxy (%s) must be the address or the network of proxies, such as 127.0.0.1, 10.0.0.0/24 or fd00::/8, and not of everybody", text)
		}
		list = append(list, network)
	}
	return list, nil
}

// perSecond are the limits as the API takes them, to which 0 is its default.
func (o Options) perSecond() limit.PerSecond {
	if o.limits.Requests == 0 {
		return limit.PerSecond{Requests: -1}
	}
	return o.limits
}

// bound bounds the connections, to what the kernel lets the process open as
// well.
func (p *Process) bound() {
	most := p.options.maxConnections
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err == nil && files.Cur < uint64(most)+reservedFiles {
		most = max(1, int(files.Cur)-reservedFiles)
		p.options.Logger.Warn("fewer connections than --max-connections are possible: raise the limit on open files (LimitNOFILE in a systemd unit, ulimit -n)",
			"connections", most, "open_files", files.Cur)
	}
	words := busyAnswer
	if p.options.tls.on() {
		words = ""
	}
	p.bounded = limit.Listen(p.listener, most, words)
	p.listener = p.bounded
}

// errEnding is why a server that drains takes nothing new.
var errEnding = errors.New("it is about to end")

// ready returns why nobody should send work here any more.
func (p *Process) ready() error {
	if p.ending.Load() {
		return errEnding
	}
	if s := p.server.Load(); s != nil && s.store.Full() != nil {
		return s.store.Full()
	}
	if filesystem.Full(p.options.Data) {
		return filesystem.Explain(p.options.Data, problem.ErrDiskFull)
	}
	return nil
}

// state is what /metrics tells.
func (p *Process) state(context.Context) monitoring.State {
	state := monitoring.State{
		Healthy: true, Connections: p.bounded.Open(), Shed: p.bounded.Shed(), FreeBytes: -1, DatabaseBytes: -1,
	}
	if s := p.server.Load(); s != nil {
		state.Census, state.Healthy = s.studies.Census(), s.store.Err() == nil
	}
	if p.database == nil {
		state.FreeBytes, state.DatabaseBytes = filesystem.Free(p.options.Data), databaseBytes(p.options.Data)
	}
	if p.certificates != nil {
		state.CertificateExpires = p.certificates.Expires()
	}
	return state
}

// databaseBytes is the size of the database with its log; -1 where there is none
// in the folder.
func databaseBytes(folder string) int64 {
	info, err := os.Stat(filepath.Join(folder, "tandem.db"))
	if err != nil {
		return -1
	}
	size := info.Size()
	if log, err := os.Stat(filepath.Join(folder, "tandem.db-wal")); err == nil {
		size += log.Size()
	}
	return size
}
