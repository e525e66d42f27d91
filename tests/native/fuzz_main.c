/* Runs a fuzzer's function once for each file that is named: what was found, again. */
#include <stdint.h>

#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int count, char **names) {
    static uint8_t text[1 << 20];
    for (int i = 1; i < count; i++) {
        FILE *file = fopen(names[i], "rb");
        CHECK(file);
        size_t size = fread(text, 1, sizeof text, file);
        (void)fclose(file);
        (void)LLVMFuzzerTestOneInput(text, size);
        printf("%s\n", names[i]);
    }
    return 0;
}
