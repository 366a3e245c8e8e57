// Package mcpcmd is "tandem mcp": agents look at studies over the Model Context
// Protocol, and change what the user allows. Each tool makes calls of the REST API
// with the user's token, and answers with what the command line prints. What a token
// may do, quotas and the audit log are the server's.
package mcpcmd

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
)

// changes are what --allow takes.
var changes = []string{"create", "enqueue", "stop"}

// Command is "tandem mcp".
func Command() *cobra.Command {
	var connection term.Connection
	var allow []string
	var listen string
	command := &cobra.Command{
		Use:   "mcp",
		Short: "Let an agent look at studies, over the Model Context Protocol",
		Long: `Let an agent look at studies, over the Model Context Protocol on standard input
and output. The agent's program starts this command.

With --listen it serves many agents over HTTP, on this machine alone: put a proxy with
TLS before it for others. Each request has its own token, as "Authorization: Bearer".

The agent lists and describes studies, queries trials, reads logs and checks study
files. It changes nothing, unless --allow names what it may do. The server checks
the token as for any client, and its audit log names the agent.`,
		Example: `  tandem mcp --server https://tandem.example.org --token-file ~/.tandem-token
  tandem mcp --allow create,enqueue,stop
  tandem mcp --listen 127.0.0.1:7180`,
		Args: term.Arguments(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error {
			for _, one := range allow {
				if !slices.Contains(changes, one) {
					return term.Misuse("--allow takes %s, not %q", strings.Join(changes, ", "), one)
				}
			}
			at := &agent{connection: connection, allow: allow, clients: map[caller]*rest.Client{}}
			if listen != "" {
				return at.listen(command.Context(), listen, command.ErrOrStderr())
			}
			return at.server().Run(command.Context(), &mcp.StdioTransport{})
		},
	}
	term.AddConnectionFlags(command, &connection)
	command.Flags().StringSliceVar(&allow, "allow", nil, "what the agent may change: create, enqueue, stop")
	command.Flags().StringVar(&listen, "listen", "", "serve over HTTP at this address of this machine, such as 127.0.0.1:7180, instead of standard input and output")
	term.CompleteFlag(command, "allow", term.Words(changes...))
	return command
}

// agent serves agents. Its tools may run at once.
type agent struct {
	connection term.Connection
	allow      []string
	mutex      sync.Mutex
	clients    map[caller]*rest.Client
}

// caller is for whom a tool calls: a token, "" the command's own, and the program's name.
type caller struct{ token, name string }

// mostClients bounds the clients that are kept.
const mostClients = 64

// open returns the client, which tells the server for whom it calls.
func (a *agent) open(request *mcp.CallToolRequest) (*rest.Client, error) {
	who := caller{name: "an agent"}
	if told := request.ClientInfo(); told != nil && told.Name != "" {
		who.name = strings.TrimSpace("agent " + told.Name + " " + told.Version)
	}
	if extra := request.GetExtra(); extra != nil && extra.Header != nil {
		who.token = bearer(extra.Header)
		if program := extra.Header.Get("User-Agent"); who.name == "an agent" && program != "" {
			who.name = "agent " + program[:min(len(program), 60)]
		}
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if client := a.clients[who]; client != nil {
		return client, nil
	}
	connection := a.connection
	connection.For = who.name
	if who.token != "" {
		connection.Token, connection.TokenFile = who.token, ""
	}
	client, err := connection.Open()
	if err != nil {
		return nil, err
	}
	if len(a.clients) >= mostClients {
		clear(a.clients)
	}
	a.clients[who] = client
	return client, nil
}

// kind is what a tool is for: its name, what it does, and what of --allow it needs.
type kind struct{ name, what, needs string }

// add adds a tool, if it is allowed. run writes its answer.
func add[In any](a *agent, to *mcp.Server, tool kind, run func(ctx context.Context, client *rest.Client, asked In, out io.Writer) error) {
	if tool.needs != "" && !slices.Contains(a.allow, tool.needs) {
		return
	}
	described := &mcp.Tool{Name: tool.name, Description: tool.what, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: tool.needs == ""}}
	mcp.AddTool(to, described, func(ctx context.Context, request *mcp.CallToolRequest, asked In) (*mcp.CallToolResult, any, error) {
		client, err := a.open(request)
		if err != nil {
			return nil, nil, err
		}
		var out strings.Builder
		if err := run(ctx, client, asked, &out); err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: out.String()}}}, nil, nil
	})
}
