set(GITOPS_PEER_SUPPORT_SOURCES process.cpp test_certs.cpp git_server.cpp peer_cluster.cpp
                                peer_argocd.cpp peer_bed.cpp)
