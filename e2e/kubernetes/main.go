// Command kubernetes runs a command with a control plane of Kubernetes on this machine:
// etcd, kube-apiserver, kube-controller-manager and kube-scheduler, as they are released,
// built from their modules. It has no nodes: e2e/cluster brings one for each test.
//
//	cd e2e/kubernetes
//	go run . go test -parallel 1 -count 1 ./workers/launcher/kubernetes    # in the repository's root
//
// The first build takes minutes. TANDEM_KUBERNETES names the folder in which the command
// finds the control plane's address, authority, administrator's token and audit log.
package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// programs are built with this module's versions.
var programs = []string{
	"go.etcd.io/etcd/server/v3", "k8s.io/kubernetes/cmd/kube-apiserver",
	"k8s.io/kubernetes/cmd/kube-controller-manager", "k8s.io/kubernetes/cmd/kube-scheduler",
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	runtime.LockOSThread() // the programs end with the thread that started them
	go func() {            // "go run" tells nothing when it is killed
		for parent := os.Getppid(); os.Getppid() == parent; {
			time.Sleep(time.Second)
		}
		stop()
	}()
	code, err := run(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubernetes:", err)
		code = 1
	}
	os.Exit(code)
}

func run(ctx context.Context, words []string) (code int, err error) {
	if len(words) == 0 {
		return 2, errors.New("name the command to run with a control plane")
	}
	folder, err := os.MkdirTemp("", "tandem-kubernetes-")
	if err != nil {
		return 1, err
	}
	p := &plane{folder: folder}
	defer func() { err = errors.Join(err, p.end()) }()
	cache, err := os.UserCacheDir()
	if err != nil {
		return 1, err
	}
	bin := filepath.Join(cache, "tandem-kubernetes")
	if err := p.start(ctx, bin); err != nil {
		return 1, err
	}
	command := exec.CommandContext(ctx, words[0], words[1:]...)
	command.Dir = "../.."
	command.Env = append(os.Environ(), "TANDEM_KUBERNETES="+folder)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	var ended *exec.ExitError
	if err := command.Run(); errors.As(err, &ended) {
		return ended.ExitCode(), nil
	} else if err != nil {
		return 1, err
	}
	return 0, nil
}

// plane is the control plane in a folder.
type plane struct {
	folder  string
	started []*exec.Cmd
}

func (p *plane) at(name string) string { return filepath.Join(p.folder, name) }

const config = `apiVersion: v1
kind: Config
current-context: here
clusters: [{name: here, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: me, user: {token: %q}}]
contexts: [{name: here, context: {cluster: here, user: me}}]
`

const audit = `apiVersion: audit.k8s.io/v1
kind: Policy
rules: [{level: Metadata}]
`

func (p *plane) start(ctx context.Context, bin string) error {
	build := exec.CommandContext(ctx, "go", append([]string{"build", "-trimpath", "-ldflags=-s -w", "-o", bin + "/"}, programs...)...)
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := errors.Join(os.MkdirAll(bin, 0o700), build.Run()); err != nil {
		return fmt.Errorf("the control plane can't be built: %w", err)
	}
	ports := [3]string{}
	for i := range ports {
		var err error
		if ports[i], err = free(ctx); err != nil {
			return err
		}
	}
	store, server := "http://"+ports[0], "https://"+ports[2]
	token := rand.Text()
	if err := p.prepare(server, token); err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(ports[2]) // it is one
	kubeconfig := "--kubeconfig=" + p.at("admin.kubeconfig")
	for _, one := range [][]string{
		{"server", "--data-dir=" + p.at("etcd"), "--listen-client-urls=" + store, "--advertise-client-urls=" + store, "--listen-peer-urls=http://" + ports[1], "--unsafe-no-fsync"},
		{
			"kube-apiserver", "--etcd-servers=" + store, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none", "--secure-port=" + port, "--cert-dir=" + p.folder,
			"--authorization-mode=RBAC", "--token-auth-file=" + p.at("tokens.csv"), "--service-cluster-ip-range=10.0.0.0/24",
			"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + p.at("accounts.pem"), "--service-account-signing-key-file=" + p.at("accounts.pem"),
			"--default-not-ready-toleration-seconds=1", "--default-unreachable-toleration-seconds=1", // pods of a lost node go soon
			"--audit-policy-file=" + p.at("audit.yaml"), "--audit-log-path=" + p.at("audit.log"),
		},
		{
			"kube-controller-manager", kubeconfig, "--leader-elect=false", "--secure-port=0", "--service-account-private-key-file=" + p.at("accounts.pem"),
			"--node-monitor-grace-period=50s", "--node-eviction-rate=10", "--secondary-node-eviction-rate=10", "--large-cluster-size-threshold=0",
		},
		{"kube-scheduler", kubeconfig, "--leader-elect=false", "--secure-port=0"},
	} {
		if err := p.begin(bin, one); err != nil {
			return err
		}
		if one[0] == "kube-apiserver" {
			if err := p.ready(ctx, server); err != nil {
				return err
			}
		}
	}
	return nil
}

// prepare writes the files that the programs read, and those that tell others of them.
func (p *plane) prepare(server, token string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	for name, content := range map[string]string{
		"tokens.csv": token + ",admin,1,\"system:masters\"\n", "token": token, "server": server, "audit.yaml": audit,
		"accounts.pem":     string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
		"admin.kubeconfig": fmt.Sprintf(config, server, p.at("ca.pem"), token),
	} {
		err = errors.Join(err, os.WriteFile(p.at(name), []byte(content), 0o600))
	}
	return err
}

// free is an address of the loopback at which nobody listens.
func free(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// begin starts a program, which says what it does in a file, and ends with this one.
func (p *plane) begin(bin string, words []string) error {
	log, err := os.Create(p.at(words[0] + ".log"))
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the program has its own
	command := exec.Command(filepath.Join(bin, words[0]), words[1:]...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		return err
	}
	p.started = append(p.started, command)
	return nil
}

// ready waits for the API server, and takes its authority from the chain that it made.
func (p *plane) ready(ctx context.Context, server string) error {
	said := errors.New("it made no certificate")
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline) && ctx.Err() == nil; time.Sleep(100 * time.Millisecond) {
		authority, err := os.ReadFile(p.at("apiserver.crt"))
		known := x509.NewCertPool()
		if err != nil || !known.AppendCertsFromPEM(authority) {
			continue
		}
		client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: known, MinVersion: tls.VersionTLS12}}}
		var response *http.Response
		if response, said = client.Get(server + "/readyz"); said != nil {
			continue
		}
		response.Body.Close() //nolint:errcheck,gosec // only its code counts
		if said = fmt.Errorf("it is not ready: %s", response.Status); response.StatusCode == http.StatusOK {
			return os.WriteFile(p.at("ca.pem"), authority, 0o600)
		}
	}
	log, err := os.ReadFile(p.at("kube-apiserver.log"))
	return errors.Join(fmt.Errorf("kube-apiserver: %w:\n%s", said, log[max(0, len(log)-4096):]), err, ctx.Err())
}

// end ends the programs, the last first, and deletes the folder.
func (p *plane) end() error {
	for i := len(p.started) - 1; i >= 0; i-- {
		p.started[i].Process.Kill() //nolint:errcheck,gosec // it may have ended
		p.started[i].Wait()         //nolint:errcheck,gosec // it was killed
	}
	return os.RemoveAll(p.folder)
}
