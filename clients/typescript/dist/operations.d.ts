import type { paths } from "../schema.js";
export type Method = "get" | "post" | "patch" | "put" | "delete";
/** Text or bytes; a `Blob` of a file (`openAsBlob` of Node) is read while it is sent. */
export type FileBody = string | Blob | ArrayBuffer | ArrayBufferView<ArrayBuffer>;
type None = Record<never, never>;
type Given<T> = [NonNullable<T>] extends [never] ? None : NonNullable<T>;
/** Parameters of the path and of the query, by name. */
export type Parameters<O> = O extends {
    parameters: {
        query?: infer Q;
        path?: infer P;
    };
} ? Given<Q> & Given<P> : None;
type Body<O> = O extends {
    requestBody: {
        content: {
            "application/json": infer B;
        };
    };
} ? {
    body: B;
} : O extends {
    requestBody: {
        content: {
            "application/octet-stream": unknown;
        };
    };
} ? {
    body: FileBody;
} : None;
export type Input<O> = Parameters<O> & Body<O>;
type Content<R> = R extends {
    content: {
        "application/json": infer B;
    };
} ? B : R extends {
    content?: never;
} ? undefined : never;
type Responses<O> = O extends {
    responses: infer R;
} ? R : never;
/** The body of the response; undefined for a 204. */
export type Result<O> = {
    [S in keyof Responses<O>]: S extends 200 | 201 | 202 | 204 ? Content<Responses<O>[S]> : never;
}[keyof Responses<O>];
export type Operation<P extends keyof paths, M extends Method> = NonNullable<paths[P][M]>;
/** Paths that have the method, and a response of JSON or none. */
export type PathOf<M extends Method> = {
    [P in keyof paths]: [Operation<P, M>] extends [never] ? never : [Result<Operation<P, M>>] extends [never] ? never : P;
}[keyof paths];
/** Paths of lists that have pages. */
export type ListPath = {
    [P in PathOf<"get">]: "cursor" extends keyof Parameters<Operation<P, "get">> ? P : never;
}[PathOf<"get">];
export type ExportPath = Extract<keyof paths, `/export/${string}`>;
export type Page<P extends ListPath> = Result<Operation<P, "get">> & ListPage;
/** What all pages have. */
export type ListPage = {
    data: unknown[];
    pagination: {
        has_next: boolean;
        next_cursor: string | null;
    };
};
export type Entry<P extends ListPath> = Result<Operation<P, "get">> extends {
    data: (infer E)[];
} ? E : never;
/** The arguments after the path; the first may be left out if nothing in it is required. */
export type Arguments<I, O> = None extends I ? [input?: I, options?: O] : [input: I, options?: O];
export {};
