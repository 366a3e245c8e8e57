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
	command := &cobra.Command{
		Use:   "mcp",
		Short: "Let an agent look at studies, over the Model Context Protocol",
		Long: `Let an agent look at studies, over the Model Context Protocol on standard input
and output. The agent's program starts this command.

The agent lists and describes studies, queries trials, reads logs and checks study
files. It changes nothing, unless --allow names what it may do. The server checks
the token as for any client, and its audit log names the agent.`,
		Example: `  tandem mcp --server https://tandem.example.org --token-file ~/.tandem-token
  tandem mcp --allow create,enqueue,stop`,
		Args: term.Arguments(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error {
			for _, one := range allow {
				if !slices.Contains(changes, one) {
					return term.Misuse("--allow takes %s, not %q", strings.Join(changes, ", "), one)
				}
			}
			at := &agent{connection: &connection, allow: allow}
			return at.server().Run(command.Context(), &mcp.StdioTransport{})
		},
	}
	term.AddConnectionFlags(command, &connection)
	command.Flags().StringSliceVar(&allow, "allow", nil, "what the agent may change: create, enqueue, stop")
	term.CompleteFlag(command, "allow", term.Words(changes...))
	return command
}

// agent serves one agent. Its tools may run at once.
type agent struct {
	connection *term.Connection
	allow      []string
	mutex      sync.Mutex
	client     *rest.Client // nil before the first call
}

// open returns the client, which tells the server for whom it calls.
func (a *agent) open(who *mcp.Implementation) (*rest.Client, error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.client != nil {
		return a.client, nil
	}
	a.connection.For = "an agent"
	if who != nil {
		a.connection.For = strings.TrimSpace("agent " + who.Name + " " + who.Version)
	}
	var err error
	a.client, err = a.connection.Open()
	return a.client, err
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
		client, err := a.open(request.ClientInfo())
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
