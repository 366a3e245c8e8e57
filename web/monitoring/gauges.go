package monitoring

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// scrapeTime bounds a look at the server.
const scrapeTime = 5 * time.Second

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("tandem_"+name, help, labels, nil)
}

// What is looked at for each scrape.
var (
	healthy     = describe("healthy", "1 while the store can be trusted; 0: the server acknowledges nothing and ends.")
	studies     = describe("studies", "Studies that are not over, by status.", "status")
	ended       = describe("studies_ended_total", "Studies that have ended since the server was started, by how they did.", "status")
	trials      = describe("trials", "Trials of the studies that are not over, by state.", "state")
	workers     = describe("workers", "Workers: alive ones were heard of within the term of a lease, silent ones within a day.", "state")
	slots       = describe("worker_slots", "Trials that the living workers offer to run at once.")
	leases      = describe("leases", "Trials that workers have.")
	connections = describe("http_connections", "Open connections.")
	shed        = describe("http_connections_shed_total", "Connections that were closed at once because there were too many.")
	free        = describe("data_free_bytes", "Room left on the disk of the data folder.")
	database    = describe("database_bytes", "Size of the database's files.")
	expires     = describe("certificate_expires_timestamp_seconds", "When the certificate that is shown ends, in Unix time.")
)

// gauges are what the server is like when somebody looks.
type gauges struct {
	state func(context.Context) State
}

// Describe names all there is.
func (g *gauges) Describe(out chan<- *prometheus.Desc) {
	for _, one := range []*prometheus.Desc{healthy, studies, ended, trials, workers, slots, leases, connections, shed, free, database, expires} {
		out <- one
	}
}

// Collect looks at the server.
func (g *gauges) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	state := g.state(ctx)
	gauge := func(what *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(what, prometheus.GaugeValue, value, labels...)
	}
	well := 0.0
	if state.Healthy {
		well = 1
	}
	gauge(healthy, well)
	for status, count := range state.Studies {
		gauge(studies, float64(count), string(status))
	}
	for status, count := range state.Ended {
		out <- prometheus.MustNewConstMetric(ended, prometheus.CounterValue, float64(count), string(status))
	}
	for name, count := range state.Trials {
		gauge(trials, float64(count), string(name))
	}
	gauge(workers, float64(state.Alive), "alive")
	gauge(workers, float64(state.Silent), "silent")
	gauge(slots, float64(state.Slots))
	gauge(leases, float64(state.Leases))
	gauge(connections, float64(state.Connections))
	out <- prometheus.MustNewConstMetric(shed, prometheus.CounterValue, float64(state.Shed))
	if state.FreeBytes >= 0 {
		gauge(free, float64(state.FreeBytes))
	}
	if state.DatabaseBytes >= 0 {
		gauge(database, float64(state.DatabaseBytes))
	}
	if !state.CertificateExpires.IsZero() {
		gauge(expires, float64(state.CertificateExpires.Unix()))
	}
}
