/** The HTTP interface's own types, by operation: straight from the schemas in protocol/http. Types only. */
import type { AnswerOf, InputOf, RouteName, RouteOf } from "../protocol/http";

/** The parts of each operation as a caller writes and reads them. The package has them written out, without schemas. */
export type Wire = {
  readonly [Name in RouteName]: {
    readonly body: InputOf<RouteOf<Name>, "body">;
    readonly query: InputOf<RouteOf<Name>, "query">;
    readonly params: InputOf<RouteOf<Name>, "params">;
    readonly answer: AnswerOf<RouteOf<Name>>;
  };
};

/** A request's body as a caller writes it. */
export type Body<Name extends keyof Wire> = Wire[Name]["body"];
export type Query<Name extends keyof Wire> = Wire[Name]["query"];
export type Answer<Name extends keyof Wire> = Wire[Name]["answer"];
/** One item of a list. */
export type Item<Name extends keyof Wire> = Answer<Name> extends readonly (infer One)[] ? One : never;

type OrUnknown<T> = T extends undefined ? unknown : T;
/** Path parameters, query and body fields of an operation in one object; a body that is not an object is used as is. */
export type Input<Name extends keyof Wire> =
  Body<Name> extends string
    ? Body<Name>
    : OrUnknown<Body<Name>> & OrUnknown<Query<Name>> & OrUnknown<Wire[Name]["params"]>;
