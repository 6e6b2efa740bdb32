/* commandbus-worker: configuration in, a worker out. */
int main(void)
{
    return 2;
}
