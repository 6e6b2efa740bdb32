/* A TCP proxy between the bus and its server that cuts the connection at a chosen moment, as
 * networks do: the client cannot know what the server made of its last request. */
#ifndef TEST_SUPPORT_PROXY_H
#define TEST_SUPPORT_PROXY_H

/* What becomes of the next request, a statement or a whole pipeline. */
typedef enum {
    PROXY_FORWARD,
    PROXY_CUT_REQUEST, /* the server never sees it */
    PROXY_CUT_RUNNING, /* forwarded, then cut at once: the server may still be working on it */
    PROXY_CUT_ANSWER,  /* the server has committed and answered: the answer is thrown away */
} proxy_moment;

typedef struct test_proxy test_proxy;

/* In front of the server that conninfo names. Serves one connection at a time. */
test_proxy *test_proxy_start(const char *conninfo);
void test_proxy_stop(test_proxy *p);

/* How to connect through the proxy. Borrowed from it. */
const char *test_proxy_conninfo(const test_proxy *p);

/* Cuts the connection at the next request, once; later connections are forwarded again. */
void test_proxy_cut(test_proxy *p, proxy_moment moment);

/* Throws the n-th answer from now away (the next one is the first) and cuts the connection; those
 * before it are forwarded. */
void test_proxy_cut_answer(test_proxy *p, int n);

/* How often a connection was cut. */
int test_proxy_cuts(const test_proxy *p);

#endif
