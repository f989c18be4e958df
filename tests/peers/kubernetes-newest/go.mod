module peers/kubernetes-newest

go 1.21

require k8s.io/client-go v0.37.2
