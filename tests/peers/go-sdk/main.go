// The public Go SDK as a program: runs one operation of the control plane, or of the app-proxy of a
// runtime that it finds through the control plane, and prints its result as JSON.
//
//	go-sdk-client CONTROL_PLANE RUNTIME OPERATION [ARGUMENTS]
//	go-sdk-client --methods
//
// The API key is in CF_API_KEY. ARGUMENTS is the JSON of the operation's input, or a name. Exit
// codes: 0, 1 when the SDK reports an error (which is on standard error), 2 for wrong usage.
// --methods prints all methods that the SDK has for an app-proxy, also those without an OPERATION here.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"time"

	"github.com/codefresh-io/go-sdk/pkg/appproxy"
	"github.com/codefresh-io/go-sdk/pkg/codefresh"
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

// ask runs an operation of the control plane itself; false when it has none of this name.
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
	case "git-sources":
		result, err = graphql.GitSource().List(ctx, runtime)
	case "create-runtime":
		result, err = graphql.Runtime().Create(ctx, decode[platform.RuntimeInstallationArgs](arguments))
	case "report-errors":
		result, err = graphql.Runtime().ReportErrors(ctx, decode[platform.ReportRuntimeErrorsArgs](arguments))
	default:
		return nil, false, nil
	}
	return result, true, err
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

// methods returns "Part.Method" for each method of each part of the SDK's interface of an app-proxy.
func methods() []string {
	names := []string{}
	proxy := reflect.TypeFor[appproxy.AppProxyAPI]()
	for i := range proxy.NumMethod() {
		part := proxy.Method(i)
		of := part.Type.Out(0)
		for j := range of.NumMethod() {
			names = append(names, part.Name+"."+of.Method(j).Name)
		}
	}
	return names
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--methods" {
		json.NewEncoder(os.Stdout).Encode(methods())
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
	ctx := context.Background()
	sdk := codefresh.New(&codefresh.ClientOptions{
		Host:   os.Args[1],
		Token:  os.Getenv("CF_API_KEY"),
		Client: &http.Client{Timeout: 30 * time.Second},
	})
	result, known, err := ask(ctx, sdk, os.Args[2], os.Args[3], arguments)
	if !known {
		var proxy appproxy.AppProxyAPI
		if proxy, err = sdk.AppProxy(ctx, os.Args[2], false); err == nil {
			result, err = run(ctx, proxy, os.Args[3], arguments)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
