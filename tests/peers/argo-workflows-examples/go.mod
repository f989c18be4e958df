module peers/argo-workflows-examples

go 1.21

require github.com/argoproj/argo-workflows/v3 v3.7.4
