module peers/argo-rollouts-examples

go 1.21

require github.com/argoproj/argo-rollouts v1.10.1
