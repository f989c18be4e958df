// The public Go SDK as a program: runs one operation of the control plane, or of the app-proxy of a
// runtime that it finds through the control plane, and prints its result as JSON.
//
//	go-sdk-client CONTROL_PLANE RUNTIME OPERATION [ARGUMENTS]
//	go-sdk-client --methods
//	go-sdk-client --platform-methods
//
// The API key is in CF_API_KEY. ARGUMENTS is the JSON of the operation's input, or a name. Exit
// codes: 0, 1 when the SDK reports an error (which is on standard error), 2 for wrong usage.
// Bodies of requests are appended to the file CF_REQUESTS, if set, a line each.
// --methods prints all methods that the SDK has for an app-proxy, also those without an OPERATION
// here; --platform-methods those for the control plane's GraphQL.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"time"

	"github.com/codefresh-io/go-sdk/pkg/appproxy"
	"github.com/codefresh-io/go-sdk/pkg/codefresh"
	"github.com/codefresh-io/go-sdk/pkg/graphql"
	model "github.com/codefresh-io/go-sdk/pkg/model/app-proxy"
	platform "github.com/codefresh-io/go-sdk/pkg/model/platform"
)

func decode[T any](text string) *T {
	value := new(T)
	if err := json.Unmarshal([]byte(text), value); err != nil {
		fmt.Fprintln(os.Stderr, "arguments:", err)
		os.Exit(2)
	}
	return value
}

func name(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// ask runs a query of the control plane itself; false when it has none of this name.
func ask(ctx context.Context, sdk codefresh.Codefresh, runtime, operation, arguments string) (any, bool, error) {
	graphql := sdk.GraphQL()
	var result any
	var err error
	switch operation {
	case "me":
		result, err = graphql.User().GetCurrent(ctx)
	case "runtime":
		result, err = graphql.Runtime().Get(ctx, runtime)
	case "runtimes":
		result, err = graphql.Runtime().List(ctx)
	case "clusters":
		result, err = graphql.Cluster().List(ctx, arguments)
	case "components":
		result, err = graphql.Component().List(ctx, runtime)
	case "git-sources":
		result, err = graphql.GitSource().List(ctx, runtime)
	case "workflows":
		result, err = graphql.Workflow().List(ctx, *decode[platform.WorkflowsFilterArgs](arguments))
	case "workflow":
		result, err = graphql.Workflow().Get(ctx, arguments)
	case "pipelines":
		result, err = graphql.Pipeline().List(ctx, *decode[platform.PipelinesFilterArgs](arguments))
	case "pipeline":
		of := decode[struct{ Name, Namespace string }](arguments)
		result, err = graphql.Pipeline().Get(ctx, of.Name, of.Namespace, runtime)
	case "version-source":
		result, err = graphql.PromotionTemplate().GetVersionSourceByRuntime(ctx, decode[platform.ObjectMeta](arguments))
	case "limits-status":
		result, err = graphql.Payments().GetLimitsStatus(ctx)
	case "latest-cli-release":
		result, err = graphql.CliRelease().GetLatest(ctx)
	default:
		return nil, false, nil
	}
	return result, true, err
}

// change runs a mutation of the control plane itself; false when it has none of this name.
func change(ctx context.Context, sdk codefresh.Codefresh, runtime, operation, arguments string) (any, bool, error) {
	runtimes := sdk.GraphQL().Runtime()
	var result any
	var err error
	switch operation {
	case "create-runtime":
		result, err = runtimes.Create(ctx, decode[platform.RuntimeInstallationArgs](arguments))
	case "delete-runtime":
		result, err = runtimes.Delete(ctx, runtime)
	case "delete-managed-runtime":
		result, err = runtimes.DeleteManaged(ctx, runtime)
	case "migrate-runtime":
		err = runtimes.MigrateRuntime(ctx, runtime)
	case "report-errors":
		result, err = runtimes.ReportErrors(ctx, decode[platform.ReportRuntimeErrorsArgs](arguments))
	case "suggest-isc-repo":
		result, err = runtimes.SetSharedConfigRepo(ctx, arguments)
	case "update-settings":
		to := decode[struct {
			Provider        platform.GitProviders
			Api, Repository string
		}](arguments)
		err = sdk.GraphQL().Account().UpdateCsdpSettings(ctx, to.Provider, to.Api, to.Repository)
	default:
		return nil, false, nil
	}
	return result, true, err
}

// rest runs a request of the control plane's REST; false when it has none of this name.
func rest(ctx context.Context, sdk codefresh.Codefresh, operation, arguments string) (any, bool, error) {
	switch operation {
	case "user": // with the account that the command line looks for in it
		user, err := sdk.Rest().User().GetCurrent(ctx)
		if err != nil {
			return nil, true, err
		}
		return map[string]any{"user": user, "activeAccount": user.GetActiveAccount()}, true, nil
	case "keys":
		keys, err := sdk.Rest().Token().List()
		return keys, true, err
	case "create-key":
		key, err := sdk.Rest().Token().Create(arguments, "a-runner")
		return key, true, err
	}
	return nil, false, nil
}

func run(ctx context.Context, proxy appproxy.AppProxyAPI, operation, arguments string) (any, error) {
	git := proxy.GitIntegration()
	switch operation {
	case "version-info":
		return proxy.VersionInfo().VersionInfo(ctx)
	case "git-integrations":
		return git.List(ctx)
	case "git-integration":
		return git.Get(ctx, name(arguments))
	case "add-git-integration":
		return git.Add(ctx, decode[model.AddGitIntegrationArgs](arguments))
	case "edit-git-integration":
		return git.Edit(ctx, decode[model.EditGitIntegrationArgs](arguments))
	case "remove-git-integration":
		return nil, git.Remove(ctx, arguments)
	case "register-to-git-integration":
		return git.Register(ctx, decode[model.RegisterToGitIntegrationArgs](arguments))
	case "deregister-from-git-integration":
		return git.Deregister(ctx, name(arguments))
	case "create-git-source":
		return nil, proxy.GitSource().Create(ctx, decode[model.CreateGitSourceInput](arguments))
	case "edit-git-source":
		return nil, proxy.GitSource().Edit(ctx, decode[model.EditGitSourceInput](arguments))
	case "delete-git-source":
		return nil, proxy.GitSource().Delete(ctx, arguments)
	case "create-argo-rollouts":
		target := decode[model.CreateArgoRolloutsInput](arguments)
		return nil, proxy.Cluster().CreateArgoRollouts(ctx, target.DestServer, target.DestNamespace)
	case "remove-cluster":
		target := decode[struct{ Server, Runtime string }](arguments)
		return nil, proxy.Cluster().Delete(ctx, target.Server, target.Runtime)
	case "remove-runtime-from-isc-repo":
		return proxy.ISC().RemoveRuntimeFromIscRepo(ctx)
	}
	fmt.Fprintln(os.Stderr, "no such operation:", operation)
	os.Exit(2)
	return nil, nil
}

// methods returns "Part.Method" for each method of each part of an interface.
func methods[Interface any]() []string {
	names := []string{}
	parts := reflect.TypeFor[Interface]()
	for i := range parts.NumMethod() {
		part := parts.Method(i)
		of := part.Type.Out(0)
		for j := range of.NumMethod() {
			names = append(names, part.Name+"."+of.Method(j).Name)
		}
	}
	return names
}

// recorder appends the body of each request to a file.
type recorder struct{ file string }

func (to recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(to.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Write(append(bytes.Clone(body), '\n')); err != nil {
		return nil, err
	}
	request.Body = io.NopCloser(bytes.NewReader(body))
	return http.DefaultTransport.RoundTrip(request)
}

// perform runs an operation of the control plane or, by its runtime, of an app-proxy.
func perform(ctx context.Context, sdk codefresh.Codefresh, runtime, operation, arguments string) (any, error) {
	if result, known, err := ask(ctx, sdk, runtime, operation, arguments); known {
		return result, err
	}
	if result, known, err := change(ctx, sdk, runtime, operation, arguments); known {
		return result, err
	}
	if result, known, err := rest(ctx, sdk, operation, arguments); known {
		return result, err
	}
	proxy, err := sdk.AppProxy(ctx, runtime, false)
	if err != nil {
		return nil, err
	}
	return run(ctx, proxy, operation, arguments)
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--methods" {
		json.NewEncoder(os.Stdout).Encode(methods[appproxy.AppProxyAPI]())
		return
	}
	if len(os.Args) == 2 && os.Args[1] == "--platform-methods" {
		json.NewEncoder(os.Stdout).Encode(methods[graphql.GraphQLAPI]())
		return
	}
	if len(os.Args) < 4 {
		fmt.Fprintln(os.Stderr, "usage: go-sdk-client CONTROL_PLANE RUNTIME OPERATION [ARGUMENTS]")
		os.Exit(2)
	}
	arguments := ""
	if len(os.Args) > 4 {
		arguments = os.Args[4]
	}
	client := &http.Client{Timeout: 30 * time.Second}
	if file := os.Getenv("CF_REQUESTS"); file != "" {
		client.Transport = recorder{file: file}
	}
	sdk := codefresh.New(&codefresh.ClientOptions{
		Host:   os.Args[1],
		Token:  os.Getenv("CF_API_KEY"),
		Client: client,
	})
	result, err := perform(context.Background(), sdk, os.Args[2], os.Args[3], arguments)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
