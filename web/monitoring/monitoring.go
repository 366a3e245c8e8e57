// Package monitoring answers: how is the server?
//
// A [Monitor] counts the requests as they end, and looks at the rest (studies,
// workers, connections, disk) when somebody asks. It answers in Prometheus' text
// format; no other package knows the library. Nothing that a user chose is a
// label: names of studies, workers and metrics never leave by this way, and the
// number of series is bounded by the code.
package monitoring

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/tandem-tune/tandem/study/poolview"
)

// State is what the server knows of itself at one moment.
type State struct {
	poolview.Census
	// Healthy is false once the store can no longer be trusted.
	Healthy bool
	// Connections are open; Shed were closed since the start as they were one
	// too many.
	Connections int64
	Shed        uint64
	// FreeBytes is the room on the disk of the data folder, DatabaseBytes the
	// size of the database's files; negative where that cannot be told.
	FreeBytes, DatabaseBytes int64
	// CertificateExpires is when the certificate that is shown ends; zero
	// without TLS.
	CertificateExpires time.Time
}

// Options make a Monitor.
type Options struct {
	// Version is the server's.
	Version string
	// State looks at the server. It is called for each scrape, and may be called
	// by several at once.
	State func(context.Context) State
	// Logger is told what could not be answered.
	Logger *slog.Logger
}

// Monitor counts requests and answers for the whole server. It is safe for
// concurrent use.
type Monitor struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	limited  *prometheus.CounterVec
	scraping http.Handler
}

// New returns a Monitor.
func New(options Options) *Monitor {
	m := &Monitor{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tandem_http_requests_total", Help: "Requests that were answered, by route and status (0: the client was gone).",
		}, []string{"route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "tandem_http_request_seconds", Help: "How long requests took, by route. Leases and event streams wait on purpose.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60},
		}, []string{"route"}),
		limited: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tandem_http_limited_total", Help: "Requests that were refused because of a bound, by bound.",
		}, []string{"bound"}),
	}
	registry := prometheus.NewRegistry()
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tandem_build_info", Help: "Always 1; the version is the label.", ConstLabels: prometheus.Labels{"version": options.Version},
	})
	build.Set(1)
	registry.MustRegister(m.requests, m.seconds, m.limited, build, &gauges{state: options.State},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.scraping = promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: complaints{options.Logger}, ErrorHandling: promhttp.ContinueOnError,
		DisableCompression: true,
	})
	return m
}

// Answered counts a request.
func (m *Monitor) Answered(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(route).Observe(took.Seconds())
}

// Limited counts a request that was refused because of a bound.
func (m *Monitor) Limited(bound string) { m.limited.WithLabelValues(bound).Inc() }

// ServeHTTP answers a scrape.
func (m *Monitor) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.scraping.ServeHTTP(w, r) }

// complaints takes what the library could not gather.
type complaints struct{ logger *slog.Logger }

// Println logs it.
func (c complaints) Println(words ...any) { c.logger.Warn("metrics", "said", words) }
